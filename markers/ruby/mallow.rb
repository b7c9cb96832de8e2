# frozen_string_literal: true

# Region markers for allocation tests in Ruby. One file: copy it, or put its folder into RUBYLIB.
#
# A region is a stretch of a program whose allocations, leaks and file descriptors `mallow check` counts:
#
#     require "mallow"
#
#     Mallow.ops(1000)
#     Mallow.measure("encode") { 1000.times { encode(message) } }
#
# A test of any framework counts what a block allocates, and asserts on it:
#
#     result, counts = Mallow.count { encode(message) }
#     assert_operator counts.allocations, :<=, 12 if counts
#
# The functions that do the work exist only while mallow runs the program. Without mallow a marker is a comparison
# with nil, and Fiddle is not even loaded.
#
# What is counted are the calls of malloc and its family, and Ruby's objects, which Ruby keeps in pages of its own: a call
# is made for what does not fit into an object, such as strings of more than 23 bytes or the table of a hash. Ruby counts
# the objects that were made, and how many more there are after a run than before.
module Mallow
  # What mallow calls what Ruby tells.
  OBJECTS = "objects"
  REMAINING_OBJECTS = "remaining_objects"

  # What a thread allocated in a count: its own calls of malloc and its family, exactly, whatever other threads did.
  #
  # allocations, bytes: successful calls, and what they asked for. reallocations: those that were realloc of a live block.
  # temporary: blocks that the thread freed before it allocated again. peak_bytes: the most bytes of these blocks that lived at
  # a time. remaining_blocks, remaining_bytes: what lives at the end.
  Counts = Struct.new(:allocations, :bytes, :reallocations, :temporary, :peak_bytes, :remaining_blocks, :remaining_bytes)

  class << self
    # Runs the block as one run of the region `name`, and returns what it returned.
    #
    # Garbage is collected before the run begins and before it ends, so that what is only waiting for the collector
    # is neither counted as a leak nor left to the next run.
    def region(name)
      # Made here, and passed as an address, because Fiddle makes an object of any other argument: neither may be
      # born in the region or die in it.
      label = "#{name.byteslice(0, 127)}\0"
      address = @begin ? Fiddle::Pointer[label].to_i : 0
      GC.start
      live = GC.stat(:heap_live_slots)
      @begin&.call(address)
      made = GC.stat(:total_allocated_objects)
      begin
        yield
      ensure
        made = GC.stat(:total_allocated_objects) - made
        GC.start
        live = GC.stat(:heap_live_slots) - live
        @end&.call(address)
        tell(made, live)
      end
    end

    # Runs the block as often as mallow asks for, each time as one run of the region `name`: MALLOW_WARMUP times for
    # warming up and MALLOW_RUNS times for counting. Without these variables, as without mallow, once.
    def measure(name, &block)
      (number_in("MALLOW_WARMUP", 0) + number_in("MALLOW_RUNS", 1)).times { region(name, &block) }
      nil
    end

    # Says how many operations one run consists of, so that figures are printed per operation as well.
    def ops(ops_per_run)
      @ops&.call(ops_per_run)
      nil
    end

    # How many operations a run should do: the number in MALLOW_OPS, which mallow sets when it derives the figure
    # per operation from runs of different length, else `usual`.
    def ops_wanted(usual)
      number_in("MALLOW_OPS", usual)
    end

    # Waits, inside a region, until what it holds stands still. The end of a region does it by itself.
    def quiesce
      @quiesce&.call
      nil
    end

    # Runs the block and counts what the calling thread allocates meanwhile. Returns the block's result and the Counts.
    #
    # Instead of counts there is nil when nothing was counted: the program does not run under `mallow record`, `check` or
    # `soak`, or not every call was recorded. What other threads allocate is not counted. Garbage is collected before the count
    # begins and before it ends.
    def count
      @counting = look_up_counting if @counting.nil?
      return [yield, nil] unless @counting

      begins, ends = @counting
      values = Fiddle::Pointer.malloc(Counts.members.size * 8, Fiddle::RUBY_FREE)
      address = values.to_i
      GC.start
      begins.call
      begin
        result = yield
      ensure
        GC.start
        written = ends.call(address, Counts.members.size)
      end
      [result, written == Counts.members.size ? Counts.new(*values[0, written * 8].unpack("Q*")) : nil]
    end

    # Whether mallow watches this program.
    def watching?
      !@begin.nil?
    end

    private

    # Tells how many objects the run that ended just now has made, and how many more there are.
    def tell(made, live)
      return unless @tell

      @tell.call(OBJECTS, made)
      @tell.call(REMAINING_OBJECTS, live.positive? ? live : 0)
    end

    # The number in an environment variable if it is one below one million.
    def number_in(variable, otherwise)
      text = ENV.fetch(variable, "")
      text.match?(/\A[0-9]{1,6}\z/) ? text.to_i : otherwise
    end

    # Finds mallow's counting functions, under whichever command of mallow that records; false when there are none.
    def look_up_counting
      return false unless ENV.key?("MALLOW_SESSION")

      require "fiddle"
      process = Fiddle::Handle::DEFAULT
      [
        Fiddle::Function.new(process["mallow_count_begin"], [], Fiddle::TYPE_VOID),
        Fiddle::Function.new(process["mallow_count_end"], [Fiddle::TYPE_INTPTR_T, Fiddle::TYPE_SIZE_T], Fiddle::TYPE_SIZE_T)
      ]
    rescue LoadError, StandardError
      false
    end

    # Finds mallow's functions in this process; leaves them nil when there are none.
    def look_up
      # mallow sets this for every program that it checks.
      return unless ENV.key?("MALLOW_RUNS")

      require "fiddle"
      process = Fiddle::Handle::DEFAULT
      names = %w[mallow_region_begin mallow_region_end mallow_ops mallow_quiesce mallow_tell]
      addresses = names.map { |name| process[name] }
      arguments = [
        [Fiddle::TYPE_INTPTR_T], [Fiddle::TYPE_INTPTR_T], [Fiddle::TYPE_LONG_LONG], [],
        [Fiddle::TYPE_VOIDP, Fiddle::TYPE_LONG_LONG]
      ]
      functions = addresses.zip(arguments).map do |address, types|
        Fiddle::Function.new(address, types, Fiddle::TYPE_VOID)
      end
      @begin, @end, @ops, @quiesce, @tell = functions
    rescue LoadError, StandardError
      # No Fiddle, or no mallow: the markers do nothing.
      nil
    end
  end

  send(:look_up)
end
