-- The data of the shop, as it is before the first call.

create table orders (
    id             text primary key,
    tenant         text not null,
    total_cents    integer not null,
    refunded_cents integer not null default 0 check (refunded_cents between 0 and total_cents)
) strict;

create table refunds (
    number          integer primary key autoincrement,
    id              text not null generated always as ('re_' || number) virtual,
    order_id        text not null references orders (id),
    tenant          text not null,
    amount_cents    integer not null,
    reason          text not null,
    idempotency_key text not null unique
) strict;

create trigger refunds_count after insert on refunds begin
    update orders set refunded_cents = refunded_cents + new.amount_cents where id = new.order_id;
end;

insert into orders (id, tenant, total_cents) values
    ('ord_1', 'acme',   12000),
    ('ord_2', 'acme',    4000),
    ('ord_3', 'globex',  7000);
