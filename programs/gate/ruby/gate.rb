# frozen_string_literal: true

# What every test of the suite in Ruby shares: which fault is seeded, and where seeded leaks are kept.
#
# A fault is seeded with GATE_SEED=alloc, leak or fd, or several of them between spaces. The line that the gate must then name
# is the one that ends with the comment of that name.
module Gate
  SEEDS = ENV.fetch("GATE_SEED", "").split
  SEED_ALLOC = SEEDS.include?("alloc")
  SEED_LEAK = SEEDS.include?("leak")
  SEED_FD = SEEDS.include?("fd")

  # As long as it will ever be: an array that grows allocates.
  LEAKED = Array.new(1000)

  def self.leak(block)
    @place = (@place || -1) + 1
    LEAKED[@place] = block
  end

  # A string that does not fit into an object (23 bytes) is one allocation.
  def self.block
    "seeded".ljust(40)
  end

  # A test that hangs ends by itself.
  Thread.new do
    sleep 60
    exit! 90
  end
end
