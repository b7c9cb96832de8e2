# Keeps what it makes in a local variable, and says what it does. Each line of its input is one more order.
class Order
  def initialize(number)
    @customer = "customer-#{number}-of-the-secret-list"
  end
end

def keep
  orders = Array.new(1000) { |number| Order.new(number) }
  puts "ready #{Process.pid} #{ARGV[0] || 'alone'}"
  $stdin.each_line { |line| orders << Order.new(line.to_i) }
  constants = Object.constants.grep(/Socket|mallow/i)
  puts "#{orders.size} orders, constants #{constants.inspect}, threads #{Thread.list.size}"
end

trap('TERM') { exit! 3 }
$stdout.sync = true
at_exit { puts 'at_exit' }
if ARGV[0] == 'fork'
  # The child ends with its parent, and keeps orders of its own.
  reader, writer = IO.pipe
  fork do
    writer.close
    orders = Array.new(1000) { |number| Order.new(number) }
    puts "worker #{Process.pid}"
    reader.read
    exit!(orders.size)
  end
  reader.close
end
keep
