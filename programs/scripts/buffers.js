// Every kind of function, each of which takes memory from malloc: a line that ends in `takes N x BYTES` begins a function
// that takes N buffers of BYTES itself, and nobody else takes buffers of so many bytes.
'use strict';

const kept = [];
const take = Buffer.allocUnsafeSlow;

function plain() { // takes 3 x 10001
  kept.push(take(10001));
}
const arrow = () => { // takes 4 x 10003
  kept.push(take(10003));
};
class Store {
  constructor() { // takes 2 x 10007
    this.first = take(10007);
  }
  keep() { // takes 5 x 10009
    kept.push(take(10009));
  }
  static make() { // takes 2 x 10037
    kept.push(take(10037));
    return new Store();
  }
  get size() { // takes 6 x 10039
    kept.push(take(10039));
    return kept.length;
  }
}
function* generated() { // takes 7 x 10061
  for (let at = 0; at < 7; at += 1) yield take(10061);
}
async function later(wait) { // takes 4 x 10067
  kept.push(take(10067));
  await wait;
  kept.push(take(10067));
}
function deep(calls) { // takes 1 x 10069
  if (calls > 0) return deep(calls - 1);
  return take(10069);
}
function compares(one, other) { // takes 1 x 10079
  if (one + other === 3) kept.push(take(10079));
  return one - other;
}
function thrown() { // takes 2 x 10091
  try {
    throw new Error('x');
  } catch {
    kept.push(take(10091));
  }
}
// Called so often that it is compiled.
function hot(number) { // takes 20000 x 1009
  return take(1009).fill(number & 0xff);
}

for (let at = 0; at < 3; at += 1) plain();
for (let at = 0; at < 4; at += 1) arrow();
for (let at = 0; at < 2; at += 1) kept.push(Store.make());
for (let at = 0; at < 5; at += 1) Store.prototype.keep();
for (let at = 0; at < 6; at += 1) void Store.prototype.size;
kept.push(...generated());
deep(40);
[1, 2].sort(compares);
thrown();
thrown();
for (let at = 0; at < 20000; at += 1) hot(at);
Promise.all([later(null), later(new Promise((done) => setTimeout(done, 1)))]).then(() => {
  console.log(kept.length, process.env.NODE_OPTIONS, process.execArgv.length);
  const child = require('child_process').spawnSync('env', { encoding: 'utf8' });
  console.log(child.stdout.split('\n').filter((line) => line.startsWith('NODE_')).join());
});
