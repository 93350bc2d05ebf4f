package audio

import (
	"fmt"
	"testing"
)

var formats = []Format{
	{ULaw, 8000}, {ALaw, 8000}, {PCM16, 8000}, {PCM16, 16000}, {PCM16, 24000}, {PCM16, 48000}, {Opus, 48000},
}

// through sends a second of a tone from one format to another and back to
// samples at the target's rate.
func through(t *testing.T, from, to Format, hz float64) []int16 {
	t.Helper()
	source, err := NewTranscoder(Format{PCM16, 48000}, from)
	if err != nil {
		t.Fatal(err)
	}

	transcoder, err := NewTranscoder(from, to)
	if err != nil {
		t.Fatal(err)
	}

	sink, err := newDecoder(to, to.Rate)
	if err != nil {
		t.Fatal(err)
	}

	var heard []int16
	in := tone(hz, 48000, 48000, 9000)

	raw, _ := pcm16Codec{}.Encode(nil, in)
	for ; len(raw) >= 1920; raw = raw[1920:] {
		if err := source.Decode(raw[:1920]); err != nil {
			t.Fatal(err)
		}

		packet, err := source.EncodeFrame(nil)
		if err != nil {
			t.Fatal(err)
		}

		if err := transcoder.Decode(packet); err != nil {
			t.Fatal(err)
		}
		if transcoder.SamplesNeeded() != 0 {
			t.Fatalf("a frame wants %d samples", transcoder.SamplesNeeded())
		}

		packet, err = transcoder.EncodeFrame(nil)
		if err != nil {
			t.Fatal(err)
		}

		if size := to.FrameBytes(); size != 0 && len(packet) != size {
			t.Fatalf("a frame of %d bytes, want %d", len(packet), size)
		}

		heard, err = sink.Decode(heard, packet)
		if err != nil {
			t.Fatal(err)
		}
	}

	return heard
}

func TestEveryFormatBecomesEveryOther(t *testing.T) {
	for _, from := range formats {
		for _, to := range formats {
			t.Run(fmt.Sprintf("%v to %v", from, to), func(t *testing.T) {
				heard := through(t, from, to, 440)
				amplitude, snr := fitTone(heard[len(heard)/4:len(heard)*3/4], 440, to.Rate)
				least := 80.0

				switch {
				case from.Encoding == Opus || to.Encoding == Opus:
					least = 10 // a coder of speech keeps no waveform
				case from.Encoding != PCM16 || to.Encoding != PCM16:
					least = 34 // G.711
				}

				if amplitude < 7800 || amplitude > 10200 || snr < least {
					t.Errorf("amplitude %.0f, signal to noise %.1f dB, want 9000 and %.0f dB", amplitude, snr, least)
				}
			})
		}
	}
}

func TestALossIsHeardAsLittleAsPossible(t *testing.T) {
	for _, from := range []Format{{ULaw, 8000}, {PCM16, 16000}, {Opus, 48000}} {
		t.Run(string(from.Encoding), func(t *testing.T) {
			source, _ := NewTranscoder(Format{PCM16, 48000}, from)
			transcoder, _ := NewTranscoder(from, Format{PCM16, 24000})
			raw, _ := pcm16Codec{}.Encode(nil, tone(400, 48000, 48000, 9000))
			var levels []Level

			for i := range 40 {
				if err := source.Decode(raw[i*1920 : (i+1)*1920]); err != nil {
					t.Fatal(err)
				}

				packet, err := source.EncodeFrame(nil)
				if err != nil {
					t.Fatal(err)
				}

				if i >= 20 && i < 30 {
					transcoder.Conceal(from.Samples(packet))
				} else if err := transcoder.Decode(packet); err != nil {
					t.Fatal(err)
				}

				if _, err := transcoder.EncodeFrame(nil); err != nil {
					t.Fatal(err)
				}

				levels = append(levels, transcoder.Level())
			}

			if levels[20] < levels[19]/2 {
				t.Errorf("the first lost frame is a hole: %v", levels)
			}
			if levels[29] > levels[19]/8 {
				t.Errorf("a long loss does not fade: %v", levels)
			}
			if levels[33] < levels[19]*3/4 {
				t.Errorf("what comes after is not heard: %v", levels)
			}
		})
	}
}

func TestPacketsOfOtherLengthsAreCutToFrames(t *testing.T) {
	transcoder, _ := NewTranscoder(ulawFormat, Format{PCM16, 24000})
	frames := 0
	for range 20 {
		if err := transcoder.Decode(make([]byte, 240)); err != nil { // 30 ms
			t.Fatal(err)
		}

		for transcoder.SamplesNeeded() == 0 {
			if packet, err := transcoder.EncodeFrame(nil); err != nil || len(packet) != 960 {
				t.Fatalf("%d bytes, %v", len(packet), err)
			}
			frames++
		}
	}

	if frames != 30 {
		t.Errorf("%d frames of 20 ms from 600 ms", frames)
	}
	if transcoder.SamplesNeeded() != 160 {
		t.Errorf("an empty transcoder wants %d samples", transcoder.SamplesNeeded())
	}
}

func TestWhatIsNoOpusIsConcealed(t *testing.T) {
	transcoder, _ := NewTranscoder(Format{Opus, 48000}, ulawFormat)
	for _, bad := range [][]byte{nil, {0x03}, {0xff, 0xff, 1, 2, 3}, make([]byte, 2000)} {
		if err := transcoder.Decode(bad); err == nil {
			t.Errorf("%x was decoded", bad[:min(len(bad), 8)])
		}
	}
}

func TestNothingIsAllocatedForAFrame(t *testing.T) {
	for _, to := range formats[:6] {
		transcoder, _ := NewTranscoder(ulawFormat, to)

		packet := frame(3)
		into := make([]byte, 0, 4000)
		run := func() {
			_ = transcoder.Decode(packet)
			into, _ = transcoder.EncodeFrame(into[:0])
			transcoder.Conceal(160)
			into, _ = transcoder.EncodeFrame(into[:0])
		}

		run()
		if got := testing.AllocsPerRun(100, run); got != 0 {
			t.Errorf("to %v: %g allocations a frame", to, got)
		}
	}
}

func TestOpusAllocatesNothing(t *testing.T) {
	transcoder, _ := NewTranscoder(ulawFormat, Format{Opus, 48000})
	back, _ := NewTranscoder(Format{Opus, 48000}, ulawFormat)

	into, again := make([]byte, 0, 4000), make([]byte, 0, 400)
	packet := frame(3)
	run := func() {
		_ = transcoder.Decode(packet)
		into, _ = transcoder.EncodeFrame(into[:0])
		_ = back.Decode(into)
		again, _ = back.EncodeFrame(again[:0])
	}

	for range 20 {
		run()
	}

	if got := testing.AllocsPerRun(100, run); got > 0 {
		t.Errorf("%g allocations a frame", got)
	}
}

func FuzzOpusPacket(f *testing.F) {
	f.Add([]byte{0x0c, 1, 2, 3})
	f.Add([]byte{0xff, 0x41, 0})
	f.Fuzz(func(t *testing.T, packet []byte) {
		transcoder, err := NewTranscoder(Format{Opus, 48000}, ulawFormat)
		if err != nil {
			t.Fatal(err)
		}

		_ = transcoder.Decode(packet) // an error, or audio; never more than a packet holds
		if n := len(transcoder.resampledSamples); n > 8000*maxOpusMillis/1000 {
			t.Fatalf("%d samples from one packet", n)
		}
	})
}

func BenchmarkTranscoder(b *testing.B) {
	for _, c := range [][2]Format{
		{{ULaw, 8000}, {ULaw, 8000}}, {{ULaw, 8000}, {PCM16, 24000}}, {{PCM16, 24000}, {ULaw, 8000}},
		{{ULaw, 8000}, {Opus, 48000}}, {{PCM16, 24000}, {Opus, 48000}},
	} {
		b.Run(fmt.Sprintf("%v-%v", c[0], c[1]), func(b *testing.B) {
			source, _ := NewTranscoder(Format{PCM16, 48000}, c[0])
			transcoder, err := NewTranscoder(c[0], c[1])
			if err != nil {
				b.Fatal(err)
			}

			raw, _ := pcm16Codec{}.Encode(nil, tone(440, 48000, 960, 9000))
			_ = source.Decode(raw)
			packet, _ := source.EncodeFrame(nil)
			into := make([]byte, 0, 4000)
			b.ReportAllocs()

			for b.Loop() {
				_ = transcoder.Decode(packet)
				into, _ = transcoder.EncodeFrame(into[:0])
			}
		})
	}
}
