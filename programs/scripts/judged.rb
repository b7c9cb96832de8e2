# Makes texts of a megabyte and more in the ways that programs do, some of them in Active Support and in what it calls, frees nothing, and says
# itself how many bytes the texts of each line have that made a megabyte or more: Ruby notes for each object the line that made it.

require "active_support"
require "active_support/core_ext"
require "active_support/json"
require "erb"
require "objspace"

MEGABYTE = 1_000_000
KEPT = []

Row = Struct.new(:name, :note)

class Report
  include ActiveSupport::Configurable

  attr_reader :rows

  def initialize(count)
    @rows = Array.new(count) { |number| Row.new("row %06d" % number, "x" * 20) }
  end

  def as_text
    rows.map { |row| "#{row.name}: #{row.note}" }.join("\n")
  end

  def as_page
    ERB.new("<% rows.each do |row| %><p><%= row.name %></p><% end %>").result(binding)
  end

  def as_json(*)
    rows.map(&:to_h)
  end

  def padded = as_text.ljust(3 * MEGABYTE)
end

def keep(text)
  KEPT << text
end

GC.disable
ObjectSpace.trace_object_allocations_start
report = Report.new(40_000)
keep("x" * MEGABYTE)
text = report.as_text.freeze
keep(text)
keep(report.as_page)
keep(report.padded)
keep(ActiveSupport::JSON.encode(report))
keep(text.upcase)
keep(text.reverse)
keep(text.truncate(MEGABYTE + 10))
keep(text.tr("a-y", "b-z"))
keep(Marshal.dump(report.rows))
keep(File.binread(RbConfig.ruby.sub(/bin.*/, "lib/x86_64-linux-gnu/libc.so.6")))
3.times { keep(text.encode("UTF-16LE")) }
[1, 2].each_with_index { |number, at| keep(text.center(2 * MEGABYTE + number + at)) }
ObjectSpace.trace_object_allocations_stop

lines = Hash.new(0)
ObjectSpace.each_object(String) do |object|
  file = ObjectSpace.allocation_sourcefile(object) or next
  bytes = ObjectSpace.memsize_of(object) - GC::INTERNAL_CONSTANTS[:RVALUE_SIZE]
  lines[[file, ObjectSpace.allocation_sourceline(object)]] += bytes if bytes.positive?
end
lines.each { |(file, line), bytes| puts "#{file}:#{line} #{bytes}" if bytes >= MEGABYTE }
