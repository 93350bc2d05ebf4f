package load

import (
	"bytes"
	"encoding/json"
	"testing"
)

const testRun = "run-0001"

func TestStampIsFoundWhereverItIs(t *testing.T) {
	r := newStampReader(testRun)
	want := Stamp{Stream: 42, Seq: 1 << 30, At: 1_795_000_000_123_456_789}
	for _, before := range []string{"{", `{"a":"trunkline_bench","b":{`, `{"trunkline_bench":"run-0000.1",`} {
		message := append(want.Append([]byte(before), testRun), "}}}"...)
		for range 2 { // the second read starts at the offset of the first
			if got, ok := r.read(message); !ok || got != want {
				t.Errorf("in %s: %+v, %v", message, got, ok)
			}
		}
	}

	field := append(want.Append([]byte{'{'}, testRun), '}')
	var parsed map[string]string
	if err := json.Unmarshal(field, &parsed); err != nil || len(parsed) != 1 {
		t.Errorf("%s is no JSON: %v", field, err)
	}
}

func TestStampOfAnotherRunIsNotRead(t *testing.T) {
	r := newStampReader(testRun)
	for _, message := range [][]byte{
		nil, []byte(`{"cursor":"x"}`),
		Stamp{1, 2, 3}.Append(nil, "run-0002"),
		Stamp{1, 2, 3}.Append(nil, testRun)[:stampLength-1],
		bytes.Replace(Stamp{1, 2, 3}.Append(nil, testRun), []byte("0002."), []byte("0o02."), 1),
	} {
		if s, ok := r.read(message); ok {
			t.Errorf("%q is read as %+v", message, s)
		}
	}
}

func FuzzStamp(f *testing.F) {
	f.Add(Stamp{1, 2, 3}.Append([]byte("{"), testRun), uint16(0))
	f.Fuzz(func(t *testing.T, message []byte, at uint16) {
		r := newStampReader(testRun)
		s, ok := r.read(message)
		if ok && !bytes.Contains(message, s.Append(nil, testRun)) {
			t.Fatalf("%q does not hold %+v", message, s)
		}

		r.offset = int(at) // any offset
		if again, ok2 := r.read(message); ok && !ok2 && !bytes.Contains(message, again.Append(nil, testRun)) {
			t.Fatalf("%q from %d: %+v", message, at, again)
		}
	})
}

func BenchmarkStamp(b *testing.B) {
	r := newStampReader(testRun)
	message := append(Stamp{1, 2, 3}.Append(bytes.Repeat([]byte(`{"a":"b"},`), 15), testRun),
		bytes.Repeat([]byte("x"), 900)...)
	for b.Loop() {
		if _, ok := r.read(message); !ok {
			b.Fatal("not read")
		}
	}
}
