package load

import "testing"

func TestIDAndCursor(t *testing.T) {
	const message = `{"id":"cc_evt_1795000000123000000","type":"x","data":{"id":"y"}}`
	if id := idOf([]byte(message)); string(id) != "cc_evt_1795000000123000000" {
		t.Errorf("the id is %q", id)
	}

	for _, none := range []string{"", `{"type":"x"}`, `{"id":"`, `{"id":7}`} {
		if id := idOf([]byte(none)); id != nil {
			t.Errorf("%q has id %q", none, id)
		}
	}

	if cursor, ok := cursorOf([]byte(`{"cursor":"a.0-1"}`)); !ok || string(cursor) != "a.0-1" {
		t.Errorf("the cursor is %q", cursor)
	}
	if cursor, ok := cursorOf([]byte(message)); ok {
		t.Errorf("an event is cursor %q", cursor)
	}
}
