# Every kind of frame that Ruby has, each with a line that asks for a megabyte each time it is reached: `S.new(capacity: M)` is one block of M bytes
# and a few, which nobody touches. The comment behind such a line says how often it is reached. What else a line allocates (tables, pages
# of objects) is less than a tenth of a megabyte in all.
#
# Three rounds. Two things are sorted by one comparison. Of five nested calls the innermost raises and rescues an ArgumentError, the others see the
# KeyError that it raises then, which only their `ensure` takes notice of. An enumerator that is asked four times has made four things; a lazy
# one looks at four numbers to find two that are even.

S = String
M = 1_000_000
ROUNDS = 3

def plain
  S.new(capacity: M) # 3
end

def optional(given = S.new(capacity: M), # 3
             keyword: S.new(capacity: M)) # 3
  [given, keyword]
end

def over_lines(*)
  plain_block(
    S.new(capacity: M), # 3
    S.new(capacity: M) # 3
  ) { S.new(capacity: M) } # 3
end

def plain_block(*)
  yield
end

def recursion(depth)
  kept = S.new(capacity: M) # 603
  depth.zero? ? kept : recursion(depth - 1)
end

def overflow(depth)
  S.new(capacity: M) if depth == 40 # 3
  overflow(depth + 1)
end

class Thing
  KEPT = S.new(capacity: M) # 1

  class << self
    INNER = S.new(capacity: M) # 1

    def made
      S.new(capacity: M) # 3
    end

    def inherited(other)
      S.new(capacity: M) # 4
      super
    end

    def const_missing(name)
      S.new(capacity: M) # 3
    end
  end

  attr_reader :number

  def initialize(number)
    @number = number
    @kept = S.new(capacity: M) # 12
  end

  def <=>(other)
    S.new(capacity: M) # 3
    number <=> other.number
  end

  def method_missing(name, *)
    S.new(capacity: M) # 3
  end

  def respond_to_missing?(*)
    S.new(capacity: M) # 3
    false
  end

  def to_s
    S.new(capacity: M) # 3
    "thing"
  end

  def coerce(other)
    S.new(capacity: M) # 3
    [other, number]
  end

  def each
    yield S.new(capacity: M) # 6
    yield S.new(capacity: M) # 6
  end

  def deconstruct
    S.new(capacity: M) # 3
    [number]
  end

  def hash
    S.new(capacity: M) # 3
    1
  end

  define_method(:defined) { S.new(capacity: M) } # 3

  include Enumerable
end

class Other < Thing
  def initialize(number)
    super
    S.new(capacity: M) # 3
  end

  def each(&block)
    super(&block)
    S.new(capacity: M) # 3
  end

  alias also_each each
end

module Finer
  refine Integer do
    def finer
      S.new(capacity: M) # 3
    end
  end
end
using Finer

def failing(depth)
  failing(depth - 1) if depth.positive?
  raise ArgumentError, "#{S.new(capacity: M)}" # 3
rescue ArgumentError
  S.new(capacity: M) # 3
  raise KeyError, "other"
ensure
  S.new(capacity: M) # 15
end

def retried
  tries = 0
  begin
    tries += 1
    S.new(capacity: M) # 9
    raise "again" if tries < 3
  rescue RuntimeError
    S.new(capacity: M) # 6
    retry
  else
    S.new(capacity: M) # 3
  end
end

def thrown
  catch(:done) do
    10.times do |at|
      S.new(capacity: M) # 9
      throw :done if at == 2
    end
  end
end

def fibers
  fiber = Fiber.new do |given|
    2.times { Fiber.yield S.new(capacity: M) } # 6
    plain_block { S.new(capacity: M) } # 3
  end
  3.times { fiber.resume(1) }
  outside = [1, 2, 3].each
  3.times { outside.next && S.new(capacity: M) } # 9
  counted = Enumerator.new { |to| 5.times { to << S.new(capacity: M) } } # 12
  4.times { counted.next }
  (1..).lazy.map { |at| S.new(capacity: M) && at }.select(&:even?).first(2) # 12
end

def threads
  lock = Mutex.new
  workers = 4.times.map do
    Thread.new do
      25.times do
        S.new(capacity: M) # 300
        lock.synchronize { S.new(capacity: M) } # 300
      end
    end
  end
  workers.each(&:join)
  dying = Thread.new do
    Thread.current.report_on_exception = false
    S.new(capacity: M) # 3
    raise "dies"
  ensure
    S.new(capacity: M) # 3
  end
  dying.join rescue S.new(capacity: M) # 3
end

# Ruby 2.7 has none; there a thread does their work.
Ractor = Class.new(Thread) { alias_method :take, :value } unless defined?(Ractor)

def ractor
  given = Ractor.new(M) do |bytes|
    4.times { String.new(capacity: bytes) } # 12
    1
  end
  given.respond_to?(:take) ? given.take : given.value
end

def evaluated
  eval("S.new(capacity: M)", binding, __FILE__, __LINE__) # 3
  Thing.class_eval(<<~RUBY, __FILE__, __LINE__ + 1)
    def by_text
      S.new(capacity: M) # 3
    end
  RUBY
  Thing.new(4).by_text
  3.instance_eval { S.new(capacity: M) } # 3
  Object.new.instance_exec(1) { |_| S.new(capacity: M) } # 3
end

def traced
  trace = TracePoint.new(:call) { |point| S.new(capacity: M) if point.method_id == :watched } # 3
  trace.enable { watched }
end

def watched
  S.new(capacity: M) # 3
end

def collected
  ObjectSpace.define_finalizer(Object.new, Gone)
  GC.start
  GC.compact if GC.respond_to?(:compact)
end

module Gone
  def self.call(_)
    S.new(capacity: M) # 3
  end
end

def signalled
  trap("USR1") { S.new(capacity: M) } # 3
  Process.kill("USR1", Process.pid)
  sleep 0.01
end

def called_back
  [3, 1, 2].sort_by { |at| S.new(capacity: M) && at } # 9
  [1, 2, 3].inject { |one, other| S.new(capacity: M) && one + other } # 6
  "banana".gsub("a") { S.new(capacity: M) && "b" } # 9
  {a: 1}.each_pair { |_, _| S.new(capacity: M) } # 3
  Hash.new { |_, _| S.new(capacity: M) }[1] # 3
  [1, 2].each_with_index.map { |_, _| S.new(capacity: M) } # 6
  method(:plain_block).to_proc.call { S.new(capacity: M) } # 3
  ->(given) { S.new(capacity: M) }.call(1) # 3
  proc { S.new(capacity: M) }.yield # 3
  %w[a b].map(&:upcase).each { S.new(capacity: M) } # 6
  at = 0
  while at < 4
    S.new(capacity: M) # 12
    at += 1
  end
  Struct.new(:one) { def shown() S.new(capacity: M) end }.new(1).shown # 3
  [1].send(:each) { S.new(capacity: M) } # 3
  [4].public_send(:map) { |_| S.new(capacity: M) } # 3
end

def forked
  child = fork do
    S.new(capacity: M) # 3
    exit!(0)
  end
  Process.wait(child)
end

def one_round
  plain
  optional
  over_lines
  recursion(200)
  begin
    overflow(0)
  rescue SystemStackError
    S.new(capacity: M) # 3
  end
  Thing.made
  Class.new(Thing)
  Thing::Missing
  things = [1, 2].map { |number| Thing.new(number) }
  things.sort
  first = things.first
  first.missing
  first.respond_to?(:nothing)
  "#{first}"
  1 + first
  first.each { |given| S.new(capacity: M) } # 6
  case first
  in [number] then S.new(capacity: M) # 3
  end
  $kept = {first => 1}
  first.defined
  Other.new(3).also_each { |given| given }
  1.finer
  begin
    failing(4)
  rescue KeyError
    S.new(capacity: M) # 3
  end
  retried
  thrown
  fibers
  threads
  ractor
  evaluated
  traced
  collected
  signalled
  called_back
  forked
end

BEGIN { String.new(capacity: 1_000_000) } # 1
at_exit { S.new(capacity: M) } # 1

Warning[:experimental] = false
ROUNDS.times { one_round }
