# A thread for each connection, HTTP/1.1 with keep-alive, no gems: server.rb --mode MODE --port N.
#
# clean    makes strings and drops them
# leak     appends what it answered to an array: a string of 200 characters a request
# buffers  builds a string of 200 KB every 50th request and drops it: the allocator keeps the room, in whole pages

require "socket"

HISTORY = []

def clean(number)
  Array.new(20) { |n| "answer #{number + n}" }
end

def leak(number)
  HISTORY << format("answer %0193d", number) # LEAK ruby-leak
end

def buffers(number)
  "x" * 200_000 if (number % 50).zero?
end

def answer(socket, work)
  socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
  while socket.gets
    length = 0
    while (line = socket.gets) && line != "\r\n"
      length = line[15..].to_i if line[0, 15].casecmp?("content-length:")
    end
    socket.read(length) if length.positive?
    work.call($requests += 1)
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
  end
rescue SystemCallError, IOError
  nil # How a client ends its connection is its own affair.
ensure
  socket.close
end

options = ARGV.each_slice(2).to_h
work = { "clean" => method(:clean), "leak" => method(:leak), "buffers" => method(:buffers) }
work = work.fetch(options.fetch("--mode", "clean"))
port = options.fetch("--port", ENV.fetch("PORT", "3030")).to_i
$requests = 0
server = TCPServer.new(ENV.fetch("HOST", "127.0.0.1"), port)
server.listen(512)
trap("TERM") { exit!(0) }
loop { Thread.new(server.accept) { |socket| answer(socket, work) } }
