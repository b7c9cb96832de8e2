# Leaks in a C extension; its Ruby objects come and go.
require_relative 'dump'

def request(number)
  params = { 'id' => number.to_s, 'body' => 'x' * 100 }
  StackLeak.handle
  params.size
end

20.times { |number| request(number) }
dump('before')
ARGV.fetch(0).to_i.times { |number| request(number) }
dump('after')
