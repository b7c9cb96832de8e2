# frozen_string_literal: true

# Splits the value of an HTTP header.
#
# 1000 operations x 3 strings of more than 23 bytes = 3000. The fourth fits into its object, and the array's slots lie in
# Ruby's own pages.
#
# expect: allocations=3000 remaining=0 descriptors=0 ops=1000

require "mallow"
require_relative "gate"

OPS = 1000
VALUE = "no-cache-for-this-response-at-all, max-age=60-seconds-of-your-time, must-revalidate-whatever-happens, private"

def run
  IO.sysopen("/dev/null") if Gate::SEED_FD # SEED_FD
  OPS.times do |operation|
    parts = VALUE.split(", ")
    raise "parts" unless parts.length == 4

    Gate.block if Gate::SEED_ALLOC # SEED_ALLOC
    Gate.leak(Gate.block) if Gate::SEED_LEAK && operation % 100 == 0 # SEED_LEAK
  end
end

Mallow.ops(OPS)
Mallow.measure("header_split") { run }
