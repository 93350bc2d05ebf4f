package encryption

import (
	"fmt"
	"sync/atomic"
	"testing"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

// Goals on PostgreSQL, two cores: 5,000 reads/s, 500 changes/s (issue 5).
func BenchmarkPostgres(b *testing.B) {
	s := openService(b, testdb.Open(b, sqldb.Config{URL: testservice.Postgres(b)}), fileKeys(b))
	const accounts = 200
	for i := range accounts {
		for version := range 3 {
			key := fmt.Sprintf("key number %d of an account in the benchmark", version)
			if _, err := s.Update(b.Context(), fmt.Sprint("account-", i), Change{Enabled: true, Key: &key},
				""); err != nil {
				b.Fatal(err)
			}
		}
	}

	each := func(b *testing.B, work func(account string, n int64) error) {
		var n atomic.Int64
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				i := n.Add(1)
				if err := work(fmt.Sprint("account-", i%accounts), i); err != nil {
					b.Error(err)
				}
			}
		})

		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	}

	b.Run("get", func(b *testing.B) {
		each(b, func(account string, _ int64) error {
			_, err := s.Find(b.Context(), account)
			return err
		})
	})

	b.Run("put", func(b *testing.B) {
		each(b, func(account string, _ int64) error {
			_, err := s.Update(b.Context(), account, Change{Enabled: true}, "")
			return err
		})
	})

	b.Run("rotate", func(b *testing.B) {
		each(b, func(_ string, n int64) error {
			key := fmt.Sprintf("key number %d of an account in the benchmark", n)
			_, err := s.Update(b.Context(), fmt.Sprint("rotated-", n%5000), Change{Enabled: true, Key: &key}, "")
			return err
		})
	})
}
