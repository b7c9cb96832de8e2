# What both programs write at a moment: the heap, the allocator's own words, the mappings.
require 'objspace'
require_relative 'stack_leak'

ObjectSpace.trace_object_allocations_start

def dump(name)
  GC.start
  File.open("#{name}.json", 'w') { |file| ObjectSpace.dump_all(output: file) }
  StackLeak.allocator("#{name}.xml")
  File.write("#{name}.smaps", File.read('/proc/self/smaps'))
end
