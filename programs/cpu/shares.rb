# shares.rb WORK: counted work in methods whose shares are known. Of seven parts `three` has three, `of_thread` two, `deep` one, below 40 calls of itself,
# and `of_child` one, in a child. Each part is 2/3 in the first loop of `spin` and 1/3 in the second; `map`, which is C, calls back once in `three`. Ends
# with 7.
def spin(count)
  total = 0
  number = 0
  while number < count * 2
    total += number & 3; number += 1 # twice
  end
  number = 0
  while number < count
    total ^= number & 3; number += 1 # once
  end
  total
end

def three(count)
  [1].map { |_| spin(count) } # called by C
  spin(count)
  spin(count)
end

def of_thread(count)
  spin(count)
  spin(count)
end

def deep(count, depth)
  return spin(count) if depth.zero?

  deep(count, depth - 1)
end

def of_child(count)
  child = fork do
    spin(count)
    exit!(0)
  end
  Process.wait(child)
end

count = ARGV[0].to_i * 1000
three(count)
Thread.new { of_thread(count) }.join
deep(count, 40)
of_child(count)
exit!(7)
