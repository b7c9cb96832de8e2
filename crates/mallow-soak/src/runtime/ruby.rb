# Loaded into Ruby by `mallow soak`: collects and reports metrics on mallow's request. Every exception is caught: the
# program must not notice this script.
begin
  name = ENV["MALLOW_SOAK_SOCKET"]
  if name && name.start_with?("@")
    require "socket"
    io = nil
    inode = nil

    # A number far from those that programs close one by one; the number may be reused by another file later,
    # so its inode is checked each time.
    connect = lambda do
      socket = UNIXSocket.new("\0#{name[1..]}")
      high = begin
        socket.fcntl(1030, 200) # F_DUPFD_CLOEXEC
      rescue SystemCallError
        nil
      end
      if high
        socket.close
        socket = UNIXSocket.for_fd(high)
        socket.autoclose = false
      end
      socket.close_on_exec = true
      io = socket
      inode = socket.stat.ino
    end

    is_ours = lambda do
      begin
        io && io.stat.ino == inode
      rescue SystemCallError, IOError
        false
      end
    end

    # Slots have several sizes from Ruby 3.2 on; how many of each live is known from 3.4 on, otherwise they are taken to
    # live as they are spread over the pages.
    managed = lambda do |live|
      base = GC::INTERNAL_CONSTANTS[:RVALUE_SIZE] || GC::INTERNAL_CONSTANTS[:BASE_SLOT_SIZE] || 40
      next live * base unless GC.respond_to?(:stat_heap)
      slots = 0
      bytes = 0
      GC.stat_heap.each_value do |heap|
        count = heap[:heap_eden_slots] || 0
        slots += count
        bytes += count * (heap[:slot_size] || base)
      end
      slots.zero? ? live * base : live * bytes / slots
    end

    answer = lambda do
      GC.start(full_mark: true, immediate_sweep: true)
      stat = GC.stat
      live = stat[:heap_live_slots] || stat[:heap_live_slot] || 0
      figures = stat.map { |key, value| value.is_a?(Numeric) ? "\"#{key}\":#{value}" : nil }.compact.join(",")
      # Pages of slots came from malloc until Ruby 3.1 mapped them itself.
      in_malloc = (RUBY_VERSION.split(".").map(&:to_i) <=> [3, 1]) < 0
      "{\"runtime\":\"ruby\",\"pid\":#{Process.pid},\"managed_bytes\":#{managed.call(live)},\"objects\":#{live}," \
        "\"in_malloc\":#{in_malloc},\"figures\":{#{figures}}}\n"
    end

    # The line that makes an object is kept from the first snapshot on: what is made between two of them is what a
    # leak leaves behind, and nothing was slower before. The tables for that are in both.
    is_traced = false
    snapshot = lambda do |path|
      begin
        require "objspace"
        ObjectSpace.trace_object_allocations_start unless is_traced
        is_traced = true
        GC.start(full_mark: true, immediate_sweep: true)
        mode = File::WRONLY | File::CREAT | File::EXCL | File::NOFOLLOW
        File.open(path, mode, 0o600) { |file| ObjectSpace.dump_all(output: file) }
        "{\"snapshot\":null}\n"
      rescue StandardError, LoadError => fault
        "{\"snapshot\":\"#{fault.class}\"}\n"
      end
    end

    # Ends for good when mallow has ended; begins again when the program has closed the connection.
    serve = lambda do
      begin
        connect.call
        unread = +""
        loop do
          asked = begin
            io.readpartial(4096)
          rescue EOFError
            break if is_ours.call
            nil
          rescue SystemCallError, IOError
            nil
          end
          connect.call unless is_ours.call
          next unless asked
          unread << asked
          while (line = unread.slice!(/\A[^\n]*\n/))
            word, path = line.chomp.split(" ", 2)
            io.write(word == "snapshot" ? snapshot.call(path) : answer.call)
          end
        end
      rescue Exception # rubocop:disable Lint/RescueException
        nil
      end
    end

    start = lambda do
      thread = Thread.new(&serve)
      thread.report_on_exception = false if thread.respond_to?(:report_on_exception=)
      thread.name = "mallow" if thread.respond_to?(:name=)
    end

    # A forked child has neither the thread nor a connection of its own.
    restart = lambda do
      begin
        IO.for_fd(io.fileno).close if is_ours.call
        io = nil
        start.call
      rescue StandardError
        nil
      end
    end

    if Process.respond_to?(:_fork)
      Process.singleton_class.prepend(Module.new do
        define_method(:_fork) do
          pid = super()
          restart.call if pid.zero?
          pid
        end
      end)
    end
    Process.singleton_class.prepend(Module.new do
      define_method(:daemon) do |*arguments|
        result = super(*arguments)
        restart.call
        result
      end
    end)

    start.call
  end
rescue Exception # rubocop:disable Lint/RescueException
  nil
end
