package event

import "testing"

func TestAccountPartitionIsReadAsWritten(t *testing.T) {
	for _, p := range []AccountPartition{
		{AccountID: "shop-1", Partition: 3, Offset: 120}, {Partition: 1023, Offset: 0},
	} {
		got, err := ParseAccountPartition([]byte(p.Key()), p.Value())
		if err != nil || got != p {
			t.Errorf("%+v became %+v: %v", p, got, err)
		}
	}

	for name, r := range map[string][2]string{
		"key of another partition": {"shop|1", `{"account_id":"shop","partition":2,"offset":0}`},
		"key of another account":   {"other|1", `{"account_id":"shop","partition":1,"offset":0}`},
		"no such account":          {"a b|1", `{"account_id":"a b","partition":1,"offset":0}`},
		"no such partition":        {"shop|1024", `{"account_id":"shop","partition":1024,"offset":0}`},
		"negative offset":          {"shop|1", `{"account_id":"shop","partition":1,"offset":-1}`},
		"tombstone":                {"shop|1", ``},
	} {
		if p, err := ParseAccountPartition([]byte(r[0]), []byte(r[1])); err == nil {
			t.Errorf("%s: read as %+v", name, p)
		}
	}
}
