# An allocation-heavy script for ruby: objects, strings, hashes and a tree that is built and dropped.
#
# Deterministic: no clock, no random numbers. It prints one checksum.

ROUNDS = 5

# Three instance variables, two of them on the heap.
class Record
  attr_reader :name, :tags

  def initialize(number)
    @number = number
    @name = "record number #{number} with a name that does not fit in its slot"
    @tags = [3, 5, 7, 11].map { |divisor| "tag#{number % divisor}" }
  end
end

def tree(depth)
  depth.zero? ? [depth] : [tree(depth - 1), tree(depth - 1), depth, nil]
end

def leaves(node)
  node.length == 1 ? 1 : leaves(node[0]) + leaves(node[1])
end

def words_by_length(records)
  records.each_with_object({}) do |record, grouped|
    (record.name.split + record.tags).each { |word| (grouped[word.length] ||= []) << word.upcase }
  end
end

def one_round(number)
  records = Array.new(12_000) { |i| Record.new(number * 10_000 + i) }
  grouped = words_by_length(records)
  text = records.map(&:name).join(',')
  text.length + grouped.values.sum(&:length) + leaves(tree(13))
end

checksum = 0
ROUNDS.times { |number| checksum = (checksum * 31 + one_round(number)) % 1_000_003 }
puts checksum
