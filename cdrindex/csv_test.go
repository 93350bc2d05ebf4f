package cdrindex

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/internal/testservice/testdb"
)

func TestCSVIsExact(t *testing.T) {
	odd := event.CDR{
		ID: "=1+1", AccountID: "acme", CallID: "a,b", InteractionID: " i ", From: "line\r\nfeed\rand\nmore",
		To:           `"quoted"`,
		CallerIDName: "Zoë, 日本", Timestamp: november, EndedTime: november + 1, DurationSeconds: ptr(0),
		CustomSIPHeaders: []byte(`{"svc_call_type":"clicktocall"}`),
	}

	onBoth(t, func(t *testing.T, x *Index) {
		rows := []event.CDR{odd}
		for i := range 4500 { // some batches
			rows = append(rows, call("acme", name("c%04d", i), november+1+int64(i)))
		}

		storeRows(t, x, rows...)
		var out bytes.Buffer
		if wrote, err := x.WriteCSV(t.Context(), inRange("acme", november, december),
			&out); err != nil || !wrote {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\r\n"); n != len(rows)+1+1 {
			t.Errorf("%d line ends", n) // one is within a value
		}

		reader := csv.NewReader(strings.NewReader(strings.ReplaceAll(out.String(), "line\r\nfeed", "line|feed")))
		lines, err := reader.ReadAll()
		if err != nil || len(lines) != len(rows)+1 {
			t.Fatalf("%d lines: %v", len(lines), err)
		}

		if got := strings.Join(lines[0], ",") + "\r\n"; got != csvHeader {
			t.Errorf("header %q", got)
		}
		if lines[1][2] != "c4499" {
			t.Errorf("the newest is %q", lines[1])
		}

		want := []string{"'=1+1", "acme", "a,b", " i ", "", "", "line|feed\rand\nmore", `"quoted"`, "Zoë, 日本", "", "",
			"",
			"1793491200", "", "1793491201", "0", "", "", "", "", "", `{"svc_call_type":"clicktocall"}`, "", "", "", "",
			""}
		if got := lines[len(lines)-1]; !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}

		out.Reset()
		if _, err := x.WriteCSV(t.Context(), inRange("nobody", 0, december), &out); err != nil ||
			out.String() != csvHeader {
			t.Errorf("nothing is %q, %v", out.String(), err)
		}
	})
}

func TestCSVHasNoFormulas(t *testing.T) {
	for _, c := range []struct{ field, text, want string }{
		{"caller_id_name", `=HYPERLINK("http://evil","x")`, `"'=HYPERLINK(""http://evil"",""x"")"`},
		{"caller_id_name", "+49 30 1234", "'+49 30 1234"},
		{"caller_id_name", "+4930", "'+4930"},
		{"caller_id_name", "-1", "'-1"},
		{"caller_id_name", "@SUM(1)", "'@SUM(1)"},
		{"caller_id_name", "\t=1", "'\t=1"},
		{"caller_id_name", "\r=1", "\"'\r=1\""},
		{"caller_id_name", "Alice = Bob", "Alice = Bob"},
		{"from", "+4930123456", "+4930123456"},
		{"to", "+49*30#", "+49*30#"},
		{"caller_id_number", "*97", "*97"},
		{"callee_id_number", "+", "'+"},
		{"to", "=1+1", "'=1+1"},
		{"from", "-4930", "'-4930"},
		{"to", "+49 30", "'+49 30"},
		{"hangup_cause", "=1", "'=1"},
		{"call_id", "@x", "'@x"},
	} {
		for i := range event.CDRFields() {
			if f := &event.CDRFields()[i]; f.Name == c.field {
				if got := string(appendText(nil, f, c.text)); got != c.want {
					t.Errorf("%s %q is written %q, want %q", c.field, c.text, got, c.want)
				}
			}
		}
	}
}

func TestCSVSaysWhetherAnErrorCanStillBeAnswered(t *testing.T) {
	x := openIndex(t, Settings{}, testdb.SQLite(t))
	_ = x.db.Close()
	var out bytes.Buffer
	if wrote, err := x.WriteCSV(t.Context(), inRange("acme", 0, december), &out); err == nil || wrote ||
		out.Len() > 0 {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
}
