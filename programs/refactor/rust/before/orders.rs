//! Adds up orders, before its code was tidied up. See ../../README.md.

use std::collections::BTreeMap;

struct Order {
    customer: String,
    items: Vec<u64>,
}

#[inline(never)]
fn load_orders(count: u64) -> Vec<Order> {
    let mut orders = Vec::new();
    for number in 0..count {
        let customer = format!("customer {}", number % 7);
        let items: Vec<u64> = (0..=number % 3).map(|item| item * 10).collect();
        orders.push(Order { customer, items });
    }
    orders
}

#[inline(never)]
fn sums(orders: &[Order]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for order in orders {
        *sums.entry(order.customer.clone()).or_insert(0) += order.items.iter().sum::<u64>();
    }
    sums
}

#[inline(never)]
fn best(sums: &BTreeMap<String, u64>) -> Option<String> {
    let mut names: Vec<&String> = sums.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(sums[*name]));
    names.first().map(|name| name.to_string())
}

fn main() {
    let orders = load_orders(120);
    let sums = sums(&orders);
    let found = best(&sums).is_some() && sums.len() == 7;
    std::process::exit(i32::from(!found));
}
