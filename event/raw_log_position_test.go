package event

import (
	"math/rand/v2"
	"testing"
)

func TestPositionsHaveTheirOldFormInGenerationZero(t *testing.T) {
	for want, p := range map[string]Position{
		"3:123456":                 {Partition: 3, Offset: 123456},
		"0:0":                      {},
		"7:9@1":                    {Partition: 7, Offset: 9, Generation: 1},
		"1023:281474976710655@255": {Partition: 1023, Offset: MaxOffset, Generation: MaxGeneration},
		"2147483647:0":             {Partition: 1<<31 - 1},
	} {
		if got := p.String(); got != want {
			t.Errorf("%+v is written %s, want %s", p, got, want)
		}
		if back, err := ParsePosition(want); err != nil || back != p {
			t.Errorf("%s was read as %+v, %v", want, back, err)
		}
	}
}

func TestParsePositionRefuses(t *testing.T) {
	for _, s := range []string{
		"", ":", "1", "1:", ":1", "1:2@", "1:2@256", "1:2@-1", "-1:2", "1:-2", "1:2@1 ", " 1:2", "1:2:3", "1:2@1@1",
		"+1:2",
		"1:281474976710656", "2147483648:1", "1:99999999999999999999999", "1:2@\xff",
	} {
		if p, err := ParsePosition(s); err == nil {
			t.Errorf("%q was read as %+v", s, p)
		}
	}
}

// What one number orders is what the pair orders.
func TestPackedPositionsCompareAsPositions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func() Position {
		p := Position{Offset: random.Int64N(MaxOffset + 1), Generation: random.IntN(MaxGeneration + 1)}
		switch random.IntN(4) {
		case 0:
			p.Offset = random.Int64N(2)
		case 1:
			p.Offset = MaxOffset - random.Int64N(2)
		}

		if random.IntN(2) == 0 {
			p.Generation %= 2
		}

		return p
	}

	for range 100_000 {
		a, b := draw(), draw()
		after := a.Generation > b.Generation || a.Generation == b.Generation && a.Offset > b.Offset
		if (a.Packed() > b.Packed()) != after || (a.Compare(b) > 0) != after || a.Packed() < 0 {
			t.Fatalf("%v and %v", a, b)
		}
	}
}

func BenchmarkParsePosition(b *testing.B) {
	header := []byte("37:123456789")
	for b.Loop() {
		if _, err := ParsePosition(string(header)); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzParsePosition(f *testing.F) {
	f.Add("3:123456")
	f.Add("3:123456@7")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePosition(s)
		if err != nil {
			return
		}

		if again, err := ParsePosition(p.String()); err != nil || again != p {
			t.Fatalf("%q: %v became %v", s, p, again)
		}
	})
}
