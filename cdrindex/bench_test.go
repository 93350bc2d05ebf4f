package cdrindex

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/internal/consume"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
)

// rowsVariable sets the size of the large table, one million unless set. Fifty million
// take 25 GB and a quarter of an hour to create.
const rowsVariable = "TRUNKLINE_CDR_ROWS"

const million = 1_000_000

func rowsWanted(b *testing.B) int {
	n, err := strconv.Atoi(os.Getenv(rowsVariable))
	if os.Getenv(rowsVariable) == "" {
		return million
	}
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// The generated table: months of equally many rows, spread over accounts; one
// call in twenty is a click to call.
const (
	genMonths     = 24
	genAccounts   = 200
	genClickEvery = 20
)

var genFirst = monthOf(time.Date(2024, 12, 1, 0, 0, 0, 0, time.UTC).Unix())

// benchTable is a generated table in a schema of its own.
type benchTable struct {
	*Index
	perMonth int
	random   *rand.Rand
}

func generate(b testing.TB, url string, total int) *benchTable {
	b.Helper()
	x := openIndex(b, Settings{}, sqldb.Config{URL: url})
	ctx := context.Background()
	perMonth := total / genMonths

	exec := func(statement string) {
		if _, err := x.db.ExecContext(ctx, statement); err != nil {
			b.Fatal(err)
		}
	}

	columns := `"` + strings.Join(storedColumns, `", "`) + `"`
	for m := genFirst; m < genFirst+genMonths; m++ {
		length := (m + 1).start() - m.start() - 3600
		exec(fmt.Sprintf(`CREATE UNLOGGED TABLE %s (LIKE %s INCLUDING ALL EXCLUDING INDEXES)`, m.partition(),
			rowsTable))
		exec(fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s
			FROM (SELECT i, md5('%d-' || i)::uuid::text AS c, %d + (i * %d / %d) AS s
				FROM generate_series(0::bigint, %d) AS i) AS g`,
			m.partition(), columns, generatedValues(m), m, m.start(), length, perMonth, perMonth-1))
		exec(fmt.Sprintf(`ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)`,
			rowsTable, m.partition(), m.start(), (m + 1).start()))
		exec(`ANALYZE ` + m.partition())
	}

	return &benchTable{x, perMonth, rand.New(rand.NewPCG(1, 2))}
}

// generatedValues returns an expression for each of storedColumns, of i, the number of a row in month m, c, its
// call id, and s, its start.
func generatedValues(m month) string {
	ofClick := func(value string) string {
		return fmt.Sprintf(`CASE WHEN i %% %d = 0 THEN %s END`, genClickEvery, value)
	}
	given := map[string]string{
		"id":                  fmt.Sprintf(`'%d-' || c`, m),
		"account_id":          fmt.Sprintf(`'account-' || i %% %d`, genAccounts),
		"call_id":             `c`,
		"interaction_id":      `c`,
		"origination_call_id": `COALESCE(` + ofClick(fmt.Sprintf(`'oc-%d-' || i`, m)) + `, '')`,
		"direction":           `'outbound'`,
		"from":                `'1' || (2000000000 + i * 7919 % 100000)::text`,
		"to":                  `'1' || (3000000000 + i * 104729 % 1000000)::text`,
		"caller_id_name":      `'Ann Example'`,
		"caller_id_number":    `'1001'`,
		"started":             `s`,
		"answered_time":       `s + 3`,
		"ended_time":          `s + 40`,
		"duration_seconds":    `40`,
		"billing_seconds":     `37`,
		"ringing_seconds":     `3`,
		"hangup_cause":        `'NORMAL_CLEARING'`,
		"presence_id":         `'1001@example'`,
		"custom_sip_headers":  `COALESCE(` + ofClick(`'{"svc_call_type":"clicktocall"}'`) + `, '')`,
		"media_server":        `'fs1'`,
		"ended_later":         `NULL`,
		"lookup_rank":         ofClick(`0`),
	}

	values := make([]string, len(storedColumns))
	for i, column := range storedColumns {
		values[i] = cmp.Or(given[column], `''`)
	}

	return strings.Join(values, ", ")
}

// click is a click to call of some month: its account, start and id.
func (t *benchTable) click() (account string, started int64, id string) {
	m := genFirst + month(t.random.IntN(genMonths))
	i := t.random.IntN(t.perMonth/genClickEvery) * genClickEvery
	length := (m + 1).start() - m.start() - 3600
	return fmt.Sprintf("account-%d", i%genAccounts), m.start() + int64(i)*length/int64(t.perMonth),
		fmt.Sprintf("oc-%d-%d", m, i)
}

// percentiles reports the duration of n queries of each kind, run in turn.
func percentiles(b *testing.B, n int, asked map[string]func()) {
	b.Helper()
	took := map[string][]time.Duration{}
	for i := range n + n/3 {
		for name, ask := range asked {
			began := time.Now()
			ask()
			if i >= n/3 { // warm-up
				took[name] = append(took[name], time.Since(began))
			}
		}
	}

	for name, all := range took {
		slices.Sort(all)
		for _, p := range []int{50, 99} {
			b.ReportMetric(float64(all[n*p/100].Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", name, p))
		}
	}

	b.ReportMetric(0, "ns/op")
}

// BenchmarkReports queries a table of a million rows over 24 months and, in the same
// run, one of rowsVariable.
func BenchmarkReports(b *testing.B) {
	server := testservice.OwnPostgres(b).URL
	began := time.Now()
	tables := map[string]*benchTable{"1M": nil}

	if n := rowsWanted(b); n != million {
		tables[fmt.Sprintf("%dM", n/million)] = nil
	}

	plain := openIndex(b, Settings{}, sqldb.Config{URL: server})
	for name := range tables {
		if _, err := plain.db.ExecContext(context.Background(), `CREATE SCHEMA "t`+name+`"`); err != nil {
			b.Fatal(err)
		}

		total := million
		if name != "1M" {
			total = rowsWanted(b)
		}

		tables[name] = generate(b, server+"&maintenance_work_mem=256MB&search_path="+`"t`+name+`"`, total)
	}

	b.Logf("made in %s", time.Since(began).Round(time.Second))
	bench := func(name string, n int, question func(t *benchTable) error) {
		b.Run(name, func(b *testing.B) {
			asked := map[string]func(){}
			for name, t := range tables {
				asked[name] = func() {
					if err := question(t); err != nil {
						b.Fatal(err)
					}
				}
			}

			percentiles(b, n, asked)
		})
	}

	ctx := context.Background()
	for _, days := range []int64{1, 31, 400} {
		span := days * 24 * 3600 / 2
		bench(fmt.Sprintf("Lookup/%d_days", days), 3000, func(t *benchTable) error {
			account, started, id := t.click()
			_, err := t.Find(ctx, account, started-span, started+span, id, nil)
			return err
		})
	}

	bench("Lookup/not_found_31_days", 3000, func(t *benchTable) error {
		account, started, id := t.click()
		if _, err := t.Find(ctx, account, started-15*86400, started+15*86400, id+"x",
			nil); fault.KindOf(err) != fault.KindNotFound {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})

	for _, t := range tables {
		explain(b, t)
	}

	whole := inRange("account-7", genFirst.start(), genFirst.start()+report.MaxRange)
	whole.PageSize = report.MaxPage
	for name, depth := range map[string]float64{"first": 1, "deep": 0.3} {
		bench("Page/1000_rows_"+name, 200, func(t *benchTable) error {
			f := whole
			f.After = report.Cursor{Time: whole.Start + int64(float64(report.MaxRange)*depth) - t.random.Int64N(1000),
				ID: "0"}
			page, err := t.List(ctx, f)
			if err == nil && len(page.Data) < 500 {
				return fmt.Errorf("%d rows", len(page.Data))
			}

			return err
		})
	}

	bench("Page/50_rows_of_one_number", 500, func(t *benchTable) error {
		f := whole
		f.PageSize, f.To = 0, "1"+strconv.Itoa(3_000_000_000+t.random.IntN(1_000_000))
		_, err := t.List(ctx, f)
		return err
	})
}

// TestAClickOfTheGeneratedTableIsFoundByItsID keeps the table of the benchmark in step with the columns.
func TestAClickOfTheGeneratedTableIsFoundByItsID(t *testing.T) {
	table := generate(t, testservice.Postgres(t), genMonths*genClickEvery*10)
	account, started, id := table.click()
	row, err := table.Find(t.Context(), account, started, started, id, nil)
	if err != nil || row.OriginationCallID != id || row.AccountID != account {
		t.Errorf("found %+v, %v", row, err)
	}
}

func explain(b *testing.B, t *benchTable) {
	account, started, id := t.click()
	rows, err := t.db.QueryContext(context.Background(), `EXPLAIN (ANALYZE, BUFFERS) `+selectRow+` WHERE account_id = $1
		AND origination_call_id = $2 AND lookup_rank IS NOT NULL AND started BETWEEN $3 AND $4
		ORDER BY lookup_rank, started, call_id LIMIT 1`, account, id, started-86400, started+86400)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			b.Fatal(err)
		}
		b.Log(line)
	}
}

// benchRecords are records like those of the captured calls, about 750 bytes each.
func benchRecords(n int) []kafka.Record {
	records := make([]kafka.Record, n)
	for i := range records {
		id := fmt.Sprintf("%08x-35c4-4394-bd1c-%012x", rand.Uint32(), rand.Uint64()>>16)
		row := call(fmt.Sprintf("account-%d", i%50), id, november+int64(i)*2_000_000/int64(n))
		row.Direction, row.HangupCause, row.MediaServer = "outbound", "NORMAL_CLEARING", "fs1.example.net"
		row.From, row.To = strconv.Itoa(15551230000+i%1000), strconv.Itoa(15550000000+i%30000)
		row.CallerIDName, row.CallerIDNumber, row.PresenceID = "Ann Example", row.From, "1002@acme.example"
		row.AnsweredTime, row.DurationSeconds, row.BillingSeconds, row.RingingSeconds = row.Timestamp+3, ptr(10), ptr(
			7), ptr(3)
		row.OtherLegCallID = id
		row.CustomChannelVars = []byte(`{"Account-ID":"acme","Bridge-ID":"` + id + `"}`)

		if i%genClickEvery == 0 {
			row.OriginationCallID, row.CustomSIPHeaders = "oc-"+id, []byte(`{"svc_call_type":"clicktocall"}`)
		}

		records[i] = record(row, 0, int64(i))
	}

	return records
}

// BenchmarkIndexing compares a bare COPY of rows into the rows' table with the indexing
// of records of the topic: decoding, one row of each call, its line in cdrindex_calls,
// and the offset. Batches of the same size alternate between the two, on two connections
// and from an empty table, so that other load on the machine affects both.
func BenchmarkIndexing(b *testing.B) {
	const rows, each, lanes = 200_000, 5000, 2
	records := benchRecords(rows)
	entries := make([]entry, rows)

	for i := range records {
		var err error
		entries[i], err = decodeEntry(&records[i], 0)
		if err != nil {
			b.Fatal(err)
		}
	}

	ctx := context.Background()
	copied := func(x *Index, _, from, to int) error {
		return x.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
			var values []any
			return tx.CopyIn(ctx, rowsTable, storedColumns, to-from, func(i int) []any {
				values = rowValues(values, &entries[from+i])
				return values
			})
		})
	}

	indexed := func(x *Index, lane, from, to int) error {
		at, err := x.positions.FindOrCreate(ctx, lane, int64(from))
		if err != nil {
			return err
		}

		next := consume.Position{LogPosition: kafka.AtOffset(int64(from + lanes*each))}
		b := batch{fence: func(ctx context.Context, tx *sqldb.BulkTx) error {
			return x.positions.Move(ctx, tx, lane, at, &next)
		}}

		for i := range records[from:to] {
			e, err := decodeEntry(&records[from+i], 0)
			if err != nil {
				return err
			}
			b.entries = append(b.entries, e)
		}

		_, err = x.apply(ctx, b)
		return err
	}

	var took [2]atomic.Int64
	for b.Loop() {
		ways := [2]func(*Index, int, int, int) error{copied, indexed}
		var tables [2]*Index
		for i := range tables {
			tables[i] = openIndex(b, Settings{}, sqldb.Config{URL: testservice.Postgres(b)})
			if err := tables[i].createPartitions(ctx, []month{monthOf(november)}); err != nil {
				b.Fatal(err)
			}
		}

		var group sync.WaitGroup
		for lane := range lanes {
			group.Go(func() {
				for at := lane * each; at < rows; at += lanes * each {
					for i, put := range ways {
						began := time.Now()
						if err := put(tables[i], lane, at, at+each); err != nil {
							b.Error(err)
						}
						took[i].Add(int64(time.Since(began)))
					}
				}
			})
		}

		group.Wait()
	}

	perSecond := func(i int) float64 {
		return float64(rows*lanes*b.N) / time.Duration(took[i].Load()).Seconds()
	}
	b.ReportMetric(perSecond(0), "COPY-rows/s")
	b.ReportMetric(perSecond(1), "indexed-rows/s")
	b.ReportMetric(perSecond(1)/perSecond(0), "ratio")
}

// BenchmarkCSV exports the rows of one account, rowsVariable of them.
func BenchmarkCSV(b *testing.B) {
	rows := 200_000
	if os.Getenv(rowsVariable) != "" {
		rows = rowsWanted(b)
	}

	x := openIndex(b, Settings{}, sqldb.Config{URL: testservice.Postgres(b)})
	records := benchRecords(rows)
	for from := 0; from < rows; from += 5000 {
		var next batch
		for i := range records[from : from+5000] {
			e, err := decodeEntry(&records[from+i], 0)
			if err != nil {
				b.Fatal(err)
			}
			e.row.AccountID = "acme"
			next.entries = append(next.entries, e)
		}

		if _, err := x.apply(context.Background(), next); err != nil {
			b.Fatal(err)
		}
	}

	records = nil
	if _, err := x.db.ExecContext(context.Background(), `ANALYZE `+rowsTable); err != nil {
		b.Fatal(err)
	}

	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	lines := 0

	for b.Loop() {
		counting := writerFunc(func(p []byte) (int, error) {
			lines += strings.Count(string(p), "\r\n")
			return len(p), nil
		})
		if _, err := x.WriteCSV(context.Background(),
			inRange("acme", november, november+report.MaxRange), counting); err != nil {
			b.Fatal(err)
		}
	}

	runtime.ReadMemStats(&after)
	if lines != b.N*(rows+1) {
		b.Fatalf("%d lines", lines)
	}

	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(after.HeapSys-min(before.HeapSys, after.HeapSys))/(1<<20), "heap-growth-MB")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
