package recording

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/report"
)

func TestListGivesEveryRecordingOnceNewestFirst(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		for i := range 25 {
			checkError(t)(h.storeAudio("acme", fmt.Sprintf("call-%02d", i), testAudio(i)))
		}

		checkError(t)(h.storeAudio("other", "call-99", testAudio(1)))
		seen := map[string]bool{}
		var at int64 = 1 << 60
		start, pages := "", 0

		for {
			page := must(h.List(t.Context(), Filter{Account: "acme", PageSize: 10, StartKey: start}))(t)
			for _, m := range page.Data {
				if seen[m.RecordingID] || m.CreatedAt > at || m.AccountID != "acme" {
					t.Errorf("%+v is out of place", m)
				}
				seen[m.RecordingID], at = true, m.CreatedAt
			}

			pages++
			start = page.NextStartKey
			if start == "" {
				break
			}
		}

		if len(seen) != 25 || pages != 3 {
			t.Errorf("%d recordings on %d pages", len(seen), pages)
		}

		for _, bad := range []struct {
			size  int
			start string
		}{{-1, ""}, {1001, ""}, {10, "x"}, {10, "MTIz"}, {10, strings.Repeat("A", 400)}} {
			if _, err := h.List(t.Context(),
				Filter{Account: "acme", PageSize: bad.size, StartKey: bad.start}); fault.KindOf(
				err) != fault.KindInvalid {
				t.Errorf("%+v: %v", bad, err)
			}
		}

		if page := must(h.List(t.Context(), Filter{Account: "nobody"}))(t); len(page.Data) != 0 || page.Data == nil ||
			page.PageSize != report.DefaultPage {
			t.Errorf("%+v", page)
		}
	})
}
