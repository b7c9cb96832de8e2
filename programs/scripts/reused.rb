# 3,000 blocks of text, made by `eval` one after the other: the code of each may lie where that of an earlier one lay, as most of it is freed.
#
# The i-th is called once and asks for a megabyte in line i * 7 % 363 + 2 of `made.rb`. 7 and 363 have no factor in common, so there are 363 such
# lines: 3,000 = 8 x 363 + 96, which is 9 calls for the lines of the first 96, 8 for the others.

3000.times do |i|
  source = "\n" * (i * 7 % 363) + "lambda do\n  String.new(capacity: 1_000_000)\nend"
  eval(source, nil, "made.rb", 1).call
  GC.start if i % 50 == 49
end
