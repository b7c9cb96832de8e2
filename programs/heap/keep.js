// Keeps what it makes, and ends when its input does.
'use strict';

class Order {
  constructor(number) {
    this.customer = `customer-${number}`;
  }
}

const orders = Array.from({ length: 1000 }, (_, number) => new Order(number));
process.stdin.on('end', () => console.log(`${orders.length} orders`)).resume();
console.log(`ready ${process.pid}`);
