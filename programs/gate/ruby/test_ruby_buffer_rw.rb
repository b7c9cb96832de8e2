# frozen_string_literal: true

# Writes into a String that has room and reads from it; two of the reads copy.
#
# Writing a piece of the same length in its place = 0. A copy of more than 23 bytes does not fit into a String object and is
# 1 block; one that ended where the buffer ends would share its bytes and be none.
# 1000 operations x (1 copy of data + 1 copy of text) = 2000.
#
# expect: allocations=2000 remaining=0 descriptors=0 ops=1000

require "mallow"
require_relative "gate"

OPS = 1000
DATA = ("0123456789abcdef" * 4).b.freeze
TEXT = ("how are you " * 4).b.freeze
BUFFER = ("\0" * 256).b

def run
  IO.sysopen("/dev/null") if Gate::SEED_FD # SEED_FD
  OPS.times do |operation|
    BUFFER[0, 64] = DATA
    BUFFER[64, 48] = TEXT
    data = BUFFER.byteslice(0, 64)
    text = BUFFER.byteslice(64, 48)
    raise "text" unless data == DATA && text == TEXT

    Gate.block if Gate::SEED_ALLOC # SEED_ALLOC
    Gate.leak(Gate.block) if Gate::SEED_LEAK && operation % 100 == 0 # SEED_LEAK
  end
end

Mallow.ops(OPS)
Mallow.measure("buffer_rw") { run }
