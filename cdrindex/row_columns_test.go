package cdrindex

import (
	"reflect"
	"testing"

	"trunkline/event"
)

func TestARowComesBackAsItWas(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		full := event.CDR{
			ID: "own id", AccountID: "acme", CallID: "c1", InteractionID: "i", OriginationCallID: "oc",
			Direction: "outbound",
			From:      `a"b`, To: "%_'\\", CallerIDName: "Zoë 日本", CallerIDNumber: "1", CalleeIDName: "=1+1",
			CalleeIDNumber: "2",
			Timestamp:      november, AnsweredTime: november + 1, EndedTime: november + 9,
			DurationSeconds: ptr(9), BillingSeconds: ptr(8), RingingSeconds: ptr(0), HangupCause: "NORMAL_CLEARING",
			PresenceID: "p", OtherLegCallID: "c0", CustomSIPHeaders: []byte(`{"svc_call_type":"clicktocall"}`),
			CustomChannelVars: []byte(`{"a":[1]}`), RecordingID: "r", MediaServer: "m",
		}
		bare := event.CDR{ID: "x", AccountID: "acme", CallID: "c2", InteractionID: "i2", Timestamp: november + 1}
		storeRows(t, x, full, bare)
		page, err := x.List(t.Context(), inRange("acme", november, december))
		if err != nil {
			t.Fatal(err)
		}

		if want := []event.CDR{bare, full}; !reflect.DeepEqual(page.Data, want) {
			t.Errorf("got  %+v\nwant %+v", page.Data, want)
		}
	})
}
