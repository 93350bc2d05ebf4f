package freeswitch

import (
	"strings"
	"testing"

	"trunkline/format/freeswitch"
	"trunkline/internal/jsonscan"
)

// Every row of a table has its columns, and nothing of the answer is lost.
func FuzzParseTable(f *testing.F) {
	for _, seed := range []string{"+OK\n", "a|b|c\n1|x|y|3\n+OK\n", "a|b\n1|x\ny\n+OK\n", "a\n\n\n+OK", "|\n|\n+OK\n",
		"a|a\n(null)|2\n+OK\n"} {
		f.Add(seed, "b")
	}

	f.Fuzz(func(t *testing.T, answer, free string) {
		got, err := parseTable(answer, free)
		if err != nil {
			return
		}

		text := ""
		if got.columns != nil {
			text = strings.Join(got.columns, "|") + "\n"
		}

		for _, row := range got.rows {
			if len(row) != len(got.columns) {
				t.Fatalf("a row of %d columns in a table of %d", len(row), len(got.columns))
			}

			for _, column := range got.columns {
				got.get(row, column)
			}

			text += strings.Join(row, "|") + "\n"
		}

		body := strings.TrimSuffix(strings.TrimRight(answer, "\r\n"), "+OK")
		if strings.TrimSuffix(text, "\n") != strings.TrimSuffix(body, "\n") {
			t.Fatalf("%q is read as %q", body, text)
		}
	})
}

func FuzzParseRows(f *testing.F) {
	for _, seed := range []string{`{"row_count": 0}`, `{"row_count":1,"rows":[{"uuid":"a","callstate":"ACTIVE"}]}`,
		`{"rows":null}`, `[]`} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, answer string) {
		rows, err := parseRows[channelRow](answer)
		if err != nil && rows != nil {
			t.Fatal("rows beside an error")
		}

		for _, row := range rows {
			row.facts()
			row.names(true)
		}
	})
}

func FuzzContactDomain(f *testing.F) {
	for _, seed := range []string{"{domain_name=a}user/1@b", "user/1@b|user/2@c", "user/", "domain_name=",
		"[a=b]user/1@c:x"} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, contact string) {
		if domain := contactDomain(contact); strings.ContainsAny(domain, ",|:]}> ") ||
			!strings.Contains(contact, domain) {
			t.Fatalf("%q has the domain %q", contact, domain)
		}
	})
}

// An event is readable exactly where it is a JSON object.
func FuzzLiveReader(f *testing.F) {
	f.Add([]byte(`{"Event-Name":"CHANNEL_ANSWER","Core-UUID":"r","Event-Sequence":"1","Unique-ID":"a"}`))
	f.Add([]byte(`{"Event-Name":["a"],"Event-Sequence":-1,"CC-Agent":"a@b","CC-Action":"agent-offering"}`))
	f.Add([]byte("{\"Event-Name\":\"\xff\"}"))

	keys := freeswitch.NewLiveKeys("tenant", true)
	f.Fuzz(func(t *testing.T, record []byte) {
		reader := freeswitch.LiveReader{Keys: keys}
		_, err := reader.Read(record)
		if object := (jsonscan.Keys{}).Scan(record, nil); (err == nil) != (object == nil) {
			t.Fatalf("%q: %v, want %v", record, err, object)
		}
	})
}
