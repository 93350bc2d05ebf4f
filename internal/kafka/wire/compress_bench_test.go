package wire

import (
	"strings"
	"testing"
	"time"
)

// BenchmarkCompression compresses a batch of 200 events of 900 bytes, as a
// contact center's platform sends them.
func BenchmarkCompression(b *testing.B) {
	var records []Record
	for i := range 200 {
		value := strings.ReplaceAll(
			strings.ReplaceAll(compressionSample, "#1", time.Unix(1700000000+int64(i), 0).UTC().Format(time.RFC3339)),
			"#2", strings.Repeat(string(rune('a'+i%26)), 3)+time.Duration(i*7919).String())
		records = append(records, Record{Key: []byte("account"), Value: []byte(value)})
	}

	for _, name := range []string{"none", "lz4", "zstd"} {
		b.Run(name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				batch := NewBatchBuilder(make([]byte, 0, 256<<10), nil)
				for i := range records {
					batch.Append(&records[i], int64(i))
				}

				if err := batch.Compress(name); err != nil {
					b.Fatal(err)
				}

				batch.Seal(ProducerState{})
				size = len(batch.Encoded)
			}

			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
			b.ReportMetric(float64(size)/float64(len(records)), "bytes/record")
		})
	}
}

const compressionSample = `{"Event-Name":"CUSTOM","Core-UUID":"6b2a0b5e-#2","FreeSWITCH-Hostname":"fs1.example.com","FreeSWITCH-IPv4":"192.0.2.17","Event-Date-Local":"#1","Event-Date-GMT":"#1","Event-Calling-File":"mod_callcenter.c","Event-Calling-Function":"cc_agent_update","Event-Subclass":"callcenter::info","CC-Action":"agent-state-change","CC-Agent":"#2@pbx.example.com","CC-Agent-State":"Receiving","CC-Agent-Status":"Available","CC-Queue":"support@pbx.example.com","CC-Member-UUID":"7c9e6679-#2","CC-Member-Session-UUID":"7c9e6679-#2","CC-Member-CID-Name":"Caller #2","CC-Member-CID-Number":"+4930#2","CC-Agent-Called-Time":"#1","CC-Agent-Answered-Time":"#1","CC-Member-Joined-Time":"#1","CC-Count":"#2","Event-Sequence":"#2","variable_domain_name":"pbx.example.com"}`
