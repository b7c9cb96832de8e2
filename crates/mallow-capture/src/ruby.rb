# Loaded into Ruby by `mallow heap capture`: writes a snapshot of the heap whenever mallow asks. Every fault is
# swallowed: the program must not notice that this is here.
#
# There is no socket, because requiring one would define its classes for the program. Requests come through a FIFO that
# mallow finds among this process's open files by its name, which is gone from the folder: "dump" makes a second FIFO for
# the answer, "go" says that mallow has opened it. A child of a child writes, so that the program goes on and has nobody
# to wait for later.
begin
  require "objspace"
  ObjectSpace.trace_object_allocations_start if ENV["MALLOW_CAPTURE_TRACE"] == "1"

  # Taken before anybody can add hooks to it: none of them is to run in the child that writes.
  process_fork = Process.respond_to?(:_fork) ? Process.method(:_fork) : Process.method(:fork)
  request = nil
  inode = nil

  # A FIFO for reading and one for writing, both open, without a name. The numbers are far from those that programs
  # close one by one.
  fifo = lambda do |kind|
    path = "/tmp/.mallow-capture-#{kind}.#{Process.pid}.#{rand(1 << 64).to_s(36)}"
    File.mkfifo(path, 0o600)
    begin
      [File::RDWR, File::WRONLY].map do |mode|
        File.open(path, mode | File::NOFOLLOW | File::NONBLOCK) do |file|
          high = IO.for_fd(file.fcntl(1030, 200), mode == File::RDWR ? "r+" : "w") # F_DUPFD_CLOEXEC
          high.autoclose = false
          high
        end
      end
    ensure
      File.unlink(path)
    end
  end

  # The numbers of what is not closed here may be somebody else's later, so nothing is closed by the collector.
  close = lambda do |file|
    file.autoclose = true
    file.close
  end

  # Another thread's stack is gone after a fork, and what only it refers to would have no holder.
  stacks = lambda do
    Thread.list.map { |thread| ["stack of a thread", thread, ObjectSpace.reachable_objects_from(thread)] }
  end

  write = lambda do |answer, held|
    begin
      # The program's own handlers are not for this child; they stay alive for the snapshot.
      held << %w[INT TERM HUP QUIT USR1 USR2 ALRM].map { |signal| Signal.trap(signal, "SYSTEM_DEFAULT") }
      answer.fcntl(4, answer.fcntl(3, 0) & ~File::NONBLOCK) # F_SETFL, F_GETFL
      ObjectSpace.dump_all(output: answer)
      answer.flush
      answer.syswrite("\0whole\n")
    rescue Exception => fault # rubocop:disable Lint/RescueException
      begin
        answer.syswrite("\0#{fault.class}\n")
      rescue Exception # rubocop:disable Lint/RescueException
        nil
      end
    end
    Process.exit!(0)
  end

  is_child = ->(pid) { pid.nil? || pid.zero? }

  dump = lambda do |answer|
    GC.start(full_mark: true, immediate_sweep: true)
    held = stacks.call
    child = process_fork.call
    if is_child.call(child)
      begin
        write.call(answer, held) if is_child.call(process_fork.call)
      ensure
        Process.exit!(0)
      end
    end
    begin
      Process.wait(child)
    rescue SystemCallError
      nil # The program waits for any child, and had this one.
    end
  end

  answers = []
  obey = lambda do |asked|
    case asked
    when "dump"
      answers.each(&close)
      answers = fifo.call("answer")
    when "go"
      # From here on mallow is the only reader, and its end is the writer's.
      close.call(answers.shift) if answers.size == 2
      dump.call(answers.first) if answers.first
      answers.each(&close)
      answers = []
    end
  end

  serve = lambda do
    begin
      while request.stat.ino == inode && (asked = request.gets)
        begin
          obey.call(asked.chomp)
        rescue SystemCallError, IOError
          nil
        end
      end
    rescue Exception # rubocop:disable Lint/RescueException
      nil
    end
  end

  server = nil
  start = lambda do
    request, writer = fifo.call("request")
    close.call(writer)
    inode = request.stat.ino
    server = Thread.new(&serve)
    server.report_on_exception = false if server.respond_to?(:report_on_exception=)
    server.name = "mallow"
  end

  # A forked child has not the thread, and its parent's FIFO is its parent's.
  restart = lambda do
    begin
      close.call(request) if request && request.stat.ino == inode
      answers.each(&close)
      answers = []
      start.call
    rescue StandardError
      nil
    end
  end

  hooks = Module.new do
    define_method(:_fork) do
      pid = super()
      restart.call if pid.zero?
      pid
    end
    define_method(:daemon) do |*arguments|
      result = super(*arguments)
      restart.call
      result
    end
  end
  Process.singleton_class.prepend(hooks)
  # Programs wait for all of their threads, and ours does not end.
  Thread.singleton_class.prepend(Module.new { define_method(:list) { super().reject { |thread| thread.equal?(server) } } })

  start.call
rescue Exception # rubocop:disable Lint/RescueException
  nil
end
