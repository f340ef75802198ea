-- The eight tables of TPC-H, filled by SQL alone: psql -v scale=0.3 -f tables.sql. Scale 1 has 6 million rows in lineitem. Keys,
-- domains and distributions are those of the standard, as far as its 22 queries see them. Each value is a hash of its row's
-- number: the same on each server. Nothing is left to be written when the tables are read.

\set ON_ERROR_STOP on
SET client_min_messages = warning;
SELECT (10000 * :scale)::bigint AS suppliers, (200000 * :scale)::bigint AS parts, (150000 * :scale)::bigint AS customers \gset

-- A number from low to high that follows from n; another salt gives another one.
CREATE FUNCTION pick(n bigint, salt bigint, low bigint, high bigint) RETURNS bigint IMMUTABLE PARALLEL SAFE
RETURN low + abs(hashint8extended(n, salt) % (high - low + 1));

CREATE FUNCTION word(n bigint, salt bigint) RETURNS text IMMUTABLE PARALLEL SAFE
RETURN ('{furiously,carefully,quickly,slyly,blithely,fluffily,ruthlessly,daringly,special,pending,unusual,express,regular,final,
ironic,even,bold,silent,quiet,packages,requests,accounts,deposits,foxes,ideas,theodolites,pinto,beans,instructions,dependencies,
excuses,platelets,asymptotes,courts,dolphins,sleep,wake,are,cajole,haggle,nag,use,boost,affix,detect,integrate,maintain,nod,was,
lose,sublate,solve,thrash,promise,engage,hinder,about,above,according,across,after,against,along,among}'::text[])[pick(n, salt, 1, 64)];

CREATE FUNCTION phrase(n bigint, salt bigint) RETURNS text IMMUTABLE PARALLEL SAFE
RETURN word(n, salt) || ' ' || word(n, salt + 1) || ' ' || word(n, salt + 2) || ' ' || word(n, salt + 3);

CREATE FUNCTION color(n bigint, salt bigint) RETURNS text IMMUTABLE PARALLEL SAFE
RETURN ('{almond,antique,aquamarine,azure,beige,bisque,black,blanched,blue,blush,brown,burlywood,burnished,chartreuse,chiffon,
chocolate,coral,cornflower,cornsilk,cream,cyan,dark,deep,dim,dodger,drab,firebrick,floral,forest,frosted,gainsboro,ghost,goldenrod,
green,grey,honeydew,hot,indian,ivory,khaki,lace,lavender,lawn,lemon,light,lime,linen,magenta,maroon,medium,metallic,midnight,mint,
misty,moccasin,navajo,navy,olive,orange,orchid,pale,papaya,peach,peru,pink,plum,powder,puff,purple,red,rose,rosy,royal,saddle,
salmon,sandy,seashell,sienna,sky,slate,smoke,snow,spring,steel,tan,thistle,tomato,turquoise,violet,wheat,white,yellow}'::text[])
[pick(n, salt, 1, 92)];

CREATE FUNCTION phone(n bigint, salt bigint, nation bigint) RETURNS text IMMUTABLE PARALLEL SAFE
RETURN concat_ws('-', nation + 10, pick(n, salt, 100, 999), pick(n, salt + 1, 100, 999), pick(n, salt + 2, 1000, 9999));

CREATE FUNCTION price(part bigint) RETURNS numeric IMMUTABLE PARALLEL SAFE
RETURN ((90000 + part / 10 % 20001 + 100 * (part % 1000)) / 100.0)::numeric(15, 2);

-- The suppliers of a part, from 0 to 3.
CREATE FUNCTION supplier_of(part bigint, place bigint, suppliers bigint) RETURNS bigint IMMUTABLE PARALLEL SAFE
RETURN 1 + (part + place * (suppliers / 4 + (part - 1) / suppliers)) % suppliers;

BEGIN;

CREATE TABLE region (r_regionkey int, r_name char(25), r_comment varchar(152));
INSERT INTO region
SELECT n - 1, name, phrase(n, 1)
FROM unnest('{AFRICA,AMERICA,ASIA,EUROPE,MIDDLE EAST}'::text[]) WITH ORDINALITY AS r (name, n);

CREATE TABLE nation (n_nationkey int, n_name char(25), n_regionkey int, n_comment varchar(152));
INSERT INTO nation
SELECT n - 1, name, region, phrase(n, 2)
FROM unnest('{ALGERIA,ARGENTINA,BRAZIL,CANADA,EGYPT,ETHIOPIA,FRANCE,GERMANY,INDIA,INDONESIA,IRAN,IRAQ,JAPAN,JORDAN,KENYA,MOROCCO,
MOZAMBIQUE,PERU,CHINA,ROMANIA,SAUDI ARABIA,VIETNAM,RUSSIA,UNITED KINGDOM,UNITED STATES}'::text[],
            '{0,1,1,1,4,0,3,3,2,2,4,4,2,4,0,0,0,1,2,3,4,2,3,3,1}'::int[]) WITH ORDINALITY AS r (name, region, n);

CREATE TABLE supplier (s_suppkey int, s_name char(25), s_address varchar(40), s_nationkey int, s_phone char(15),
                       s_acctbal numeric(15, 2), s_comment varchar(101));
INSERT INTO supplier
SELECT n, 'Supplier#' || lpad(n::text, 9, '0'), left(md5(n::text), pick(n, 1, 10, 32)::int), nation, phone(n, 2, nation),
       pick(n, 5, -99999, 999999) / 100.0,
       CASE pick(n, 6, 1, 500) WHEN 1 THEN 'Customer ' || word(n, 7) || ' Complaints' WHEN 2 THEN 'Customer ' || word(n, 7) || ' Recommends'
                               ELSE phrase(n, 7) END || ' ' || left(phrase(n, 11), 49)
FROM generate_series(1, :suppliers) AS n, LATERAL (SELECT pick(n, 15, 0, 24) AS nation OFFSET 0) AS its;

CREATE TABLE part (p_partkey int, p_name varchar(55), p_mfgr char(25), p_brand char(10), p_type varchar(25), p_size int,
                   p_container char(10), p_retailprice numeric(15, 2), p_comment varchar(23));
INSERT INTO part
SELECT n, concat_ws(' ', color(n, 1), color(n, 2), color(n, 3), color(n, 4), color(n, 5)), 'Manufacturer#' || maker,
       'Brand#' || maker || pick(n, 6, 1, 5),
       concat_ws(' ', ('{STANDARD,SMALL,MEDIUM,LARGE,ECONOMY,PROMO}'::text[])[pick(n, 7, 1, 6)],
                 ('{ANODIZED,BURNISHED,PLATED,POLISHED,BRUSHED}'::text[])[pick(n, 8, 1, 5)],
                 ('{TIN,NICKEL,BRASS,STEEL,COPPER}'::text[])[pick(n, 9, 1, 5)]),
       pick(n, 10, 1, 50),
       concat_ws(' ', ('{SM,LG,MED,JUMBO,WRAP}'::text[])[pick(n, 11, 1, 5)],
                 ('{CASE,BOX,BAG,JAR,PKG,PACK,CAN,DRUM}'::text[])[pick(n, 12, 1, 8)]),
       price(n), left(word(n, 13) || ' ' || word(n, 14), 23)
FROM generate_series(1, :parts) AS n, LATERAL (SELECT pick(n, 15, 1, 5) AS maker OFFSET 0) AS its;

CREATE TABLE partsupp (ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost numeric(15, 2), ps_comment varchar(199));
INSERT INTO partsupp
SELECT part, supplier_of(part, place, :suppliers), pick(n, 1, 1, 9999), pick(n, 2, 100, 100000) / 100.0,
       left(concat_ws(' ', phrase(n, 3), phrase(n, 7), phrase(n, 11), phrase(n, 15)), 199)
FROM generate_series(1, :parts) AS part, generate_series(0, 3) AS place, LATERAL (SELECT part * 4 + place AS n OFFSET 0) AS its;

CREATE TABLE customer (c_custkey int, c_name varchar(25), c_address varchar(40), c_nationkey int, c_phone char(15),
                       c_acctbal numeric(15, 2), c_mktsegment char(10), c_comment varchar(117));
INSERT INTO customer
SELECT n, 'Customer#' || lpad(n::text, 9, '0'), left(md5(n::text), pick(n, 1, 10, 32)::int), nation, phone(n, 2, nation),
       pick(n, 5, -99999, 999999) / 100.0, ('{AUTOMOBILE,BUILDING,FURNITURE,MACHINERY,HOUSEHOLD}'::text[])[pick(n, 6, 1, 5)],
       concat_ws(' ', phrase(n, 7), phrase(n, 11), word(n, 16))
FROM generate_series(1, :customers) AS n, LATERAL (SELECT pick(n, 15, 0, 24) AS nation OFFSET 0) AS its;

CREATE TABLE lineitem (l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, l_quantity numeric(15, 2),
                       l_extendedprice numeric(15, 2), l_discount numeric(15, 2), l_tax numeric(15, 2), l_returnflag char(1),
                       l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct char(25),
                       l_shipmode char(10), l_comment varchar(44));
INSERT INTO lineitem
SELECT o / 8 * 32 + o % 8 + 1, part, supplier_of(part, pick(n, 1, 0, 3), :suppliers), line, quantity, quantity * price(part),
       pick(n, 2, 0, 10) / 100.0, pick(n, 3, 0, 8) / 100.0,
       CASE WHEN received > '1995-06-17' THEN 'N' ELSE ('{R,A}'::text[])[pick(n, 4, 1, 2)] END,
       CASE WHEN shipped > '1995-06-17' THEN 'O' ELSE 'F' END, shipped, ordered + pick(n, 5, 30, 90)::int, received,
       ('{DELIVER IN PERSON,COLLECT COD,NONE,TAKE BACK RETURN}'::text[])[pick(n, 6, 1, 4)],
       ('{REG AIR,AIR,RAIL,SHIP,TRUCK,MAIL,FOB}'::text[])[pick(n, 7, 1, 7)], left(phrase(n, 8), 44)
FROM generate_series(0, :customers * 10 - 1) AS o, generate_series(1, pick(o, 1, 1, 7)) AS line,
     LATERAL (SELECT o * 8 + line AS n OFFSET 0) AS number,
     LATERAL (SELECT pick(n, 12, 1, :parts) AS part, pick(n, 13, 1, 50) AS quantity,
                     date '1992-01-01' + pick(o, 2, 0, 2405)::int AS ordered OFFSET 0) AS its,
     LATERAL (SELECT ordered + pick(n, 14, 1, 121)::int AS shipped OFFSET 0) AS sent,
     LATERAL (SELECT shipped + pick(n, 15, 1, 30)::int AS received OFFSET 0) AS arrived;

CREATE TABLE orders (o_orderkey int, o_custkey int, o_orderstatus char(1), o_totalprice numeric(15, 2), o_orderdate date,
                     o_orderpriority char(15), o_clerk char(15), o_shippriority int, o_comment varchar(79));
-- A third of the customers orders nothing.
INSERT INTO orders
SELECT l_orderkey, customer + (customer - 1) / 2, status, total, date '1992-01-01' + pick(o, 2, 0, 2405)::int,
       ('{1-URGENT,2-HIGH,3-MEDIUM,4-NOT SPECIFIED,5-LOW}'::text[])[pick(o, 3, 1, 5)],
       'Clerk#' || lpad(pick(o, 4, 1, (1000 * :scale)::bigint + 1)::text, 9, '0'), 0,
       CASE pick(o, 5, 1, 100) WHEN 1 THEN 'special ' || word(o, 6) || ' requests' ELSE phrase(o, 6) END || ' ' || left(phrase(o, 10), 27)
FROM (SELECT l_orderkey, (l_orderkey - 1) / 32 * 8 + (l_orderkey - 1) % 32 AS o,
             sum(l_extendedprice * (1 + l_tax) * (1 - l_discount))::numeric(15, 2) AS total,
             CASE WHEN min(l_linestatus) = max(l_linestatus) THEN min(l_linestatus) ELSE 'P' END AS status
      FROM lineitem GROUP BY l_orderkey ORDER BY l_orderkey) AS summed,
     LATERAL (SELECT pick(o, 14, 1, :customers * 2 / 3) AS customer OFFSET 0) AS its;

ALTER TABLE region ADD PRIMARY KEY (r_regionkey);
ALTER TABLE nation ADD PRIMARY KEY (n_nationkey);
ALTER TABLE supplier ADD PRIMARY KEY (s_suppkey);
ALTER TABLE part ADD PRIMARY KEY (p_partkey);
ALTER TABLE partsupp ADD PRIMARY KEY (ps_partkey, ps_suppkey);
ALTER TABLE customer ADD PRIMARY KEY (c_custkey);
ALTER TABLE orders ADD PRIMARY KEY (o_orderkey);
ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber);
CREATE INDEX ON nation (n_regionkey);
CREATE INDEX ON supplier (s_nationkey);
CREATE INDEX ON partsupp (ps_suppkey);
CREATE INDEX ON customer (c_nationkey);
CREATE INDEX ON orders (o_custkey);
CREATE INDEX ON lineitem (l_partkey, l_suppkey);
CREATE INDEX ON lineitem (l_suppkey);

COMMIT;
VACUUM (FREEZE, ANALYZE) region, nation, supplier, part, partsupp, customer, orders, lineitem;
CHECKPOINT;
