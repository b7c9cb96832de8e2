# Code that is freed while mallow stands still, so that no call of `free` is recorded, and code that is made where it lay.
#
# 200 blocks of `before.rb` are called, mallow is stopped, and they are freed; 200 of `after.rb` are made meanwhile, and called when mallow goes on:
# the i-th asks for a megabyte in line i + 2.

def made(file)
  200.times.map { |i| eval("\n" * i + "lambda do\n  String.new(capacity: 1_000_000)\nend", nil, file, 1) }
end

mallow = Process.ppid
blocks = made("before.rb")
blocks.each(&:call)
Process.kill(:STOP, mallow)
# More than a ring holds: then mallow is waited for no longer.
200_000.times { String.new(capacity: 2000) }
blocks = nil
GC.start
blocks = made("after.rb")
Process.kill(:CONT, mallow)
sleep 3
blocks.each(&:call)
