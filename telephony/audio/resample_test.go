package audio

import (
	"fmt"
	"math"
	"testing"
)

var ratios = [][2]int{
	{8000, 24000}, {24000, 8000}, {8000, 48000}, {48000, 8000}, {8000, 16000}, {16000, 8000},
	{16000, 24000}, {24000, 16000}, {16000, 48000}, {48000, 16000}, {24000, 48000}, {48000, 24000},
	{12000, 24000}, {32000, 24000}, {24000, 12000}, {24000, 32000},
}

func TestResamplingKeepsTelephoneSpeechClean(t *testing.T) {
	for _, r := range ratios {
		for _, hz := range []float64{440, 1000, 2200, 3400} {
			t.Run(fmt.Sprintf("%g Hz from %d to %d", hz, r[0], r[1]), func(t *testing.T) {
				resampler, err := NewResampler(r[0], r[1])
				if err != nil {
					t.Fatal(err)
				}

				const amplitude = 24000
				in := tone(hz, r[0], r[0], amplitude)
				var out []int16

				for n := FrameSamples(r[0]); len(in) >= n; in = in[n:] {
					before := len(out)
					out = resampler.Process(out, in[:n])
					if len(out)-before != FrameSamples(r[1]) {
						t.Fatalf("a frame of %d samples became %d, want %d", n, len(out)-before, FrameSamples(r[1]))
					}
				}

				got, snr := fitTone(out[len(out)/10:len(out)/10+len(out)/2], hz, r[1])
				if snr < 80 {
					t.Errorf("signal to noise %.1f dB, want 80", snr)
				}
				if db := 20 * math.Log10(got/amplitude); math.Abs(db) > 0.3 {
					t.Errorf("level changed by %.2f dB", db)
				}
			})
		}
	}
}

func TestResamplingRemovesWhatTheLowerRateCannotCarry(t *testing.T) {
	for _, hz := range []float64{4700, 6000, 9000, 11500} {
		resampler, err := NewResampler(24000, 8000)
		if err != nil {
			t.Fatal(err)
		}

		out := resampler.Process(nil, tone(hz, 24000, 24000, 20000))
		loudest := 0
		for _, s := range out[200 : len(out)-200] {
			loudest = max(loudest, int(s), -int(s))
		}

		if loudest > 2 { // -80 dB
			t.Errorf("%g Hz comes through with amplitude %d", hz, loudest)
		}
	}
}

func TestResamplingDoesNotDependOnHowTheStreamIsCut(t *testing.T) {
	in := tone(700, 16000, 3200, 10000)
	whole, _ := NewResampler(16000, 24000)
	want := whole.Process(nil, in)
	cut, _ := NewResampler(16000, 24000)
	var got []int16

	for i, n := 0, 1; i < len(in); i, n = i+n, n%37+1 {
		got = cut.Process(got, in[i:min(i+n, len(in))])
	}

	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Error("the same samples in other pieces give another result")
	}
}

func TestSilenceAfterSoundIsSilent(t *testing.T) {
	r, _ := NewResampler(8000, 24000)
	r.Process(nil, tone(440, 8000, 160, 9000))
	first := r.Process(nil, make([]int16, 160))
	if first[0] == 0 {
		t.Error("the filter's tail was cut off")
	}

	for _, s := range r.Process(nil, make([]int16, 160)) {
		if s != 0 {
			t.Fatal("sound in silence")
		}
	}
}

func TestRatesThatCannotBe(t *testing.T) {
	for _, r := range [][2]int{{0, 8000}, {8000, 44100}, {4000, 8000}, {8000, 96000}, {-8000, 8000}} {
		if _, err := NewResampler(r[0], r[1]); err == nil {
			t.Errorf("from %d to %d was accepted", r[0], r[1])
		}
	}
}

func BenchmarkResample(b *testing.B) {
	for _, r := range [][2]int{{8000, 24000}, {24000, 8000}, {8000, 48000}, {48000, 8000}, {16000, 24000}} {
		b.Run(fmt.Sprintf("%d-%d", r[0], r[1]), func(b *testing.B) {
			resampler, _ := NewResampler(r[0], r[1])
			in := tone(440, r[0], FrameSamples(r[0]), 9000)
			out := make([]int16, 0, 2*FrameSamples(r[1]))
			b.ReportAllocs()

			for b.Loop() {
				out = resampler.Process(out[:0], in)
			}
		})
	}
}
