-- The data of the shop, as it is before the first call.

create table orders (
    id             text primary key,
    tenant         text not null,
    total_cents    integer not null check (total_cents > 0),
    refunded_cents integer not null default 0,
    currency       text not null,
    -- The last line of defence: whatever is written here, an order never gives back more than it took.
    constraint refunded_within_total check (refunded_cents between 0 and total_cents)
) strict;

create table refunds (
    number          integer primary key autoincrement,
    id              text not null generated always as ('re_' || number) virtual,
    order_id        text not null references orders (id),
    tenant          text not null,
    amount_cents    integer not null check (amount_cents > 0),
    currency        text not null,
    reason          text not null,
    status          text not null default 'pending' check (status in ('pending', 'paid', 'failed')),
    requested_by    text not null,
    idempotency_key text not null unique,
    created_at      text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) strict;

create unique index refunds_by_id on refunds (id);

create trigger refunds_count after insert on refunds begin
    update orders set refunded_cents = refunded_cents + new.amount_cents where id = new.order_id;
end;

create table documents (
    id     text primary key,
    tenant text not null,
    title  text not null,
    body   text not null
) strict;

insert into orders (id, tenant, total_cents, refunded_cents, currency) values
    ('ord_4821', 'acme',    4000, 2000, 'USD'),
    ('ord_1001', 'acme',   10000,    0, 'USD'),
    ('ord_9001', 'globex',  7000,    0, 'USD');

insert into documents (id, tenant, title, body) values
    ('doc-a', 'acme',   'Returns at Acme',   'Goods may be returned within 30 days. Refunds above 50.00 USD need a manager.'),
    ('doc-b', 'globex', 'Returns at Globex', 'Goods may be returned within 14 days, in their packaging.');
