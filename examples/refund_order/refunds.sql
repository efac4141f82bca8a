create table orders (
    id             text primary key,
    tenant         text not null,
    total_cents    integer not null check (total_cents > 0),
    refunded_cents integer not null default 0,
    constraint refunded_within_total check (refunded_cents between 0 and total_cents)
) strict;

create table refunds (
    number          integer primary key autoincrement,
    id              text not null generated always as ('re_' || number) virtual,
    order_id        text not null references orders (id),
    amount_cents    integer not null check (amount_cents > 0),
    reason          text not null,
    note            text,
    status          text not null default 'pending',
    -- What the refund costs the shop itself: nobody outside is to learn it.
    internal_cost   integer not null generated always as (25 + amount_cents / 50) virtual,
    idempotency_key text not null unique
) strict;

create trigger refunds_count after insert on refunds begin
    update orders set refunded_cents = refunded_cents + new.amount_cents where id = new.order_id;
end;

insert into orders (id, tenant, total_cents) values
    ('ORD-100001', 'acme',   20000),
    ('ORD-100002', 'acme',   80000),
    ('ORD-900001', 'globex', 50000);
