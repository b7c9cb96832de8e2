# One unit of DWARF 4 with the function `victim`, which the unit calls `dwarf_name`; the test adds its inlined calls and the end.
.section .debug_abbrev,"",%progbits
.Labbrev:
# 1: a unit, 2: a function, both with children, a name, a first address and a length; 3: an inlined call with children and nothing else
.uleb128 1, 0x11
.byte 1
.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
.uleb128 2, 0x2e
.byte 1
.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
.uleb128 3, 0x1d
.byte 1
.uleb128 0, 0
.byte 0
.section .debug_info,"",%progbits
.long .Lend - .Lbegin
.Lbegin:
.short 4
.long 0
.byte 8
.uleb128 1
.string "unit"
.quad victim
.quad 64
.uleb128 2
.string "dwarf_name"
.quad victim
.quad 64
