# Comes to a dump of a heap with 500 sessions, which a hash keeps.
require 'objspace'
ObjectSpace.trace_object_allocations_start
class Session
  def initialize(number)
    @number = number
    @text = "session #{number}, which is too long to lie in the object itself"
    @list = [number, { at: number }]
  end
end
KEPT = {}
500.times { |number| KEPT[number] = Session.new(number) }
GC.start
ObjectSpace.dump_all(output: :string)
