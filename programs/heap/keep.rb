# Keeps what it makes, in a local variable of its main thread, and says what it does. Each line of its input is one more order.
class Order
  def initialize(number)
    @customer = "customer-#{number}-of-the-secret-list"
  end
end

trap('TERM') do
  puts 'ended'
  exit! 3
end
$stdout.sync = true
orders = Array.new(1000) { |number| Order.new(number) }
at_exit { puts 'at_exit' }
if ARGV[0] == 'fork'
  fork do
    puts "worker #{Process.pid}"
    sleep
  end
end
children = ARGV[0] == 'fork' ? 'with a child' : 'alone'
puts "ready #{Process.pid} #{children}"
$stdin.each_line { |line| orders << Order.new(line.to_i) }
puts "#{orders.size} orders, constants #{Object.constants.grep(/Socket|mallow/i).inspect}"
