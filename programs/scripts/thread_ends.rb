# Threads whose native thread allocates when their script has ended: `strdup` is the destructor of a key of theirs. The context of a thread may be
# freed by then, as the collector of garbage runs in between, and its address be another's.

require "fiddle"

LIBC = Fiddle.dlopen(nil)
create = Fiddle::Function.new(LIBC["pthread_key_create"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT)
SET = Fiddle::Function.new(LIBC["pthread_setspecific"], [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT)
TEXT = Fiddle::Pointer["a text that is copied when a thread ends"]
KEY = Fiddle::Pointer.malloc(4)
create.call(KEY, LIBC["strdup"])
NUMBER = KEY[0, 4].unpack1("i")

30.times do |round|
  threads = 20.times.map do
    Thread.new do
      SET.call(NUMBER, TEXT)
      Fiber.new { 10.times { String.new(capacity: 10_000) } }.resume
    end
  end
  threads.each(&:join)
  threads = nil
  GC.start
  100.times { Fiber.new { String.new(capacity: 1_000) }.resume }
  sleep 0.001 if round.even?
end
