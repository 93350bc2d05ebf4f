package recording

import (
	"context"
	"fmt"
	"math"

	"trunkline/internal/fault"
	"trunkline/internal/report"
	"trunkline/recording/envelope"
)

// Page is one page of an account's recordings, newest first.
type Page = report.Page[Metadata]

// List returns a page of at most pageSize recordings (0 for report.DefaultPage). It begins
// at startKey, the NextStartKey of another page, or at the newest recording for "".
func (s *Service) List(ctx context.Context, accountID string, pageSize int, startKey string) (*Page, error) {
	if pageSize == 0 {
		pageSize = report.DefaultPage
	}
	if pageSize < 1 || pageSize > report.MaxPage {
		return nil, fault.InvalidField("page_size", "invalid", fmt.Sprintf("page_size must be between 1 and %d", report.MaxPage))
	}
	from, ok := parseStartKey(startKey)
	if !ok {
		return nil, fault.InvalidField("start_key", "invalid", "start_key must be a page's next_start_key")
	}
	found, err := s.rows.selectRows(ctx, `WHERE account_id = $1 AND (created_at, recording_id) <= ($2, $3)
		ORDER BY created_at DESC, recording_id DESC LIMIT $4`, accountID, from.createdAt, from.RecordingID, pageSize+1)
	if err != nil {
		return nil, err
	}
	page := &Page{Data: make([]Metadata, 0, len(found)), PageSize: pageSize}
	for i, r := range found {
		if i == pageSize {
			page.NextStartKey = r.startKey()
			break
		}
		page.Data = append(page.Data, r.Metadata)
	}
	return page, nil
}

func (r *row) startKey() string { return report.StartKey(r.createdAt, r.RecordingID) }

func parseStartKey(key string) (from row, ok bool) {
	if key == "" {
		return row{createdAt: math.MaxInt64}, true
	}
	from.createdAt, from.RecordingID, ok = report.ParseStartKey(key, 300)
	return from, ok && envelope.ValidID(from.RecordingID)
}
