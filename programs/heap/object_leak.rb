# Leaks Ruby objects: each request leaves its session behind.
require_relative 'dump'

class Session
  def initialize(number)
    @user = "user #{number} of the shop"
    @cart = Array.new(100) { |item| item }
    @body = "#{number} #{'x' * 10_000}"
  end
end

SESSIONS = {}

def request(number)
  SESSIONS[number] = Session.new(number)
end

20.times { |number| request(number) }
dump('before')
ARGV.fetch(0).to_i.times { |number| request(1000 + number) }
dump('after')
