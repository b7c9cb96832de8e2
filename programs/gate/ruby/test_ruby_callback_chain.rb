# frozen_string_literal: true

# A promise with a chain of 16 futures, each derived from the one before by a lambda.
#
# A lambda is 1 block for itself and 1 for the environment of the call that made it; the environment of the operation's own
# block, which all 16 close over, moves into 1 block with the first of them. Futures have no more instance variables than fit
# into an object.
# 200 operations x (16 links x 2 + 1) = 6600. The environment of `run` moves into 1 block per run: 6601.
#
# expect: allocations=6601 remaining=0 descriptors=0 ops=200

require "mallow"
require_relative "gate"

OPS = 200
LINKS = 16

class Future
  attr_reader :value

  def then(&function)
    @function = function
    @derived = Future.new
  end

  def fulfil(value)
    @value = value
    @derived&.fulfil(@function.call(value))
  end
end

def run
  IO.sysopen("/dev/null") if Gate::SEED_FD # SEED_FD
  OPS.times do |operation|
    promise = Future.new
    last = promise
    LINKS.times { last = last.then { |value| value + 1 } }
    promise.fulfil(operation)
    raise "value" unless last.value == operation + LINKS

    Gate.block if Gate::SEED_ALLOC # SEED_ALLOC
    Gate.leak(Gate.block) if Gate::SEED_LEAK && operation % 100 == 0 # SEED_LEAK
  end
end

Mallow.ops(OPS)
Mallow.measure("callback_chain") { run }
