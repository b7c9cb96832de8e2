// An allocation-heavy script for node: objects, strings, maps and buffers outside the managed heap.
//
// Deterministic: no clock, no random numbers. V8 maps its heap itself; what goes through malloc are buffers, parser and
// compiler data, and the runtime's own structures. It prints one checksum.
'use strict';

const ROUNDS = 6;

function record(number) {
  return { number, name: `record ${number}`, tags: [3, 5, 7].map((divisor) => `tag${number % divisor}`) };
}

function wordsByLength(records) {
  const grouped = new Map();
  for (const { name, tags } of records) {
    for (const word of name.split(' ').concat(tags)) {
      if (!grouped.has(word.length)) grouped.set(word.length, []);
      grouped.get(word.length).push(word.toUpperCase());
    }
  }
  return grouped;
}

function buffers(count) {
  let sum = 0;
  for (let i = 0; i < count; i += 1) {
    const buffer = Buffer.alloc(8192 + (i % 64) * 128, i & 0xff);
    sum += buffer[buffer.length - 1] + buffer.length;
  }
  return sum;
}

function oneRound(number) {
  const records = Array.from({ length: 40000 }, (_, i) => record(number * 10000 + i));
  let count = 0;
  for (const words of wordsByLength(records).values()) count += words.length;
  return count + JSON.stringify(records).length + buffers(4000);
}

let checksum = 0;
for (let number = 0; number < ROUNDS; number += 1) checksum = (checksum * 31 + oneRound(number)) % 1000003;
console.log(checksum);
