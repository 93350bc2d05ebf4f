package api

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/audit/audittest"
)

func TestAbandonedCallers(t *testing.T) {
	e := newEnv(t)
	const day = int64(figuresDay)
	put := func(account, call, queue, caller string, at int64) {
		_, err := e.db.ExecContext(t.Context(),
			`INSERT INTO figures_abandoned VALUES ($1, $2, $3, 1, $4, 4000, 1, $5, $6, '')`, account, call, (at-4)*1000,
			at*1000, queue, caller)
		must(t, err)
	}

	put("demo", "c1", "sales", "+4930111", day+10)
	put("demo", "c2", "support", "", day+20)
	put("demo", "c3", "sales", "=1+1", day+30)
	put("demo", "c4", "sales", "+4930111", day+90_000)
	put("sub", "c5", "sales", "1", day+10)

	alice := bearer(e.loginUser("alice").AccessToken)
	list := func(query string) string {
		t.Helper()
		var page struct {
			Data []struct {
				CallID string `json:"call_id"`
				Wait   int64  `json:"wait_ms"`
				At     int64  `json:"abandoned_at"`
				Short  bool
			}
			Next string `json:"next_start_key"`
		}
		e.ask(200, "GET", figuresReport("abandoned", query), alice, "", &page)
		var calls []string

		for _, c := range page.Data {
			if c.Wait != 4000 || !c.Short || c.At < day {
				t.Errorf("%+v", c)
			}
			calls = append(calls, c.CallID)
		}

		if page.Next != "" {
			calls = append(calls, page.Next)
		}

		return strings.Join(calls, " ")
	}
	if all, sales, caller := list(""), list("&queue_id=sales"), list("&caller=%2B4930111"); all != "c3 c2 c1" ||
		sales != "c3 c1" || caller != "c1" {
		t.Errorf("%s, %s, %s", all, sales, caller)
	}

	first := strings.Fields(list("&page_size=2"))
	if second := list("&page_size=2&start_key=" + first[2]); second != "c1" {
		t.Errorf("the second page has %s", second)
	}

	csv := e.ask(200, "GET", figuresReport("abandoned", "&format=csv"), alice, "", nil).Body.String()
	want := fmt.Sprintf(
		"account_id,queue_id,call_id,interaction_id,caller,entered_at,abandoned_at,wait_ms,short\r\ndemo,sales,c3,,'=1+1,%d,%d,4000,true\r\n",
		day+26, day+30)
	if !strings.HasPrefix(csv, want) || !strings.Contains(csv, ",+4930111,") {
		t.Errorf("csv %s", csv)
	}

	audittest.Await(t, e.audit, "demo", "cdr.export", 1)
}
