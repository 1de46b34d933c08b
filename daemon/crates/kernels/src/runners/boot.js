const fs = require('node:fs');
let data = Buffer.alloc(0);
const piece = Buffer.alloc(1 << 16);
let end = -1;
while ((end = data.indexOf(10)) < 0) {
  const count = fs.readSync(3, piece, 0, piece.length, null);
  if (count === 0) process.exit(0);
  data = Buffer.concat([data, piece.subarray(0, count)]);
}
const first = JSON.parse(data.subarray(0, end).toString());
new Function('require', 'OPTIONS', 'REST', first.runner)(require, first.options, data.subarray(end + 1));
