"""3,000 functions, made by `exec` one after the other: the code of each lies where that of an earlier one lay.

The i-th is called once and allocates one block of 1,233 bytes (`bytes(1200)`) in line i * 7 % 363 + 2 of `made.py`. 7 and 363 have no
factor in common, so there are 363 such lines: 3,000 = 8 x 363 + 96, which is 9 calls for the lines of the first 96, 8 for the others.
"""

for i in range(3000):
    names = {}
    source = "\n" * (i * 7 % 363) + "def made():\n    return bytes(1200)\n"
    exec(compile(source, "made.py", "exec"), names)
    names["made"]()
    del names
