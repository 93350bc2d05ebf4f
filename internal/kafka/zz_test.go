package kafka
import ("testing";"runtime";"github.com/klauspost/compress/zstd";"bytes")
func TestZZ(t *testing.T){
 // magic + FHD(no single segment, no fcs) + window descriptor
 for _, wd := range []byte{0x50,0x88,0xA0,0xC8} {
 b := []byte{0x28,0xb5,0x2f,0xfd, 0x00, wd, /*block: last, raw? RLE size*/ 0x03|0x0,0x00,0x10, 'a'}
 // RLE block: type 1: header = last(1) | type<<1 | size<<3
 h := uint32(1 | 1<<1 | (100000<<3)); b[6]=byte(h);b[7]=byte(h>>8);b[8]=byte(h>>16)
 var m1,m2 runtime.MemStats
 runtime.ReadMemStats(&m1)
 d:=decoder{}
 out,err:=d.unpack(4,b)
 runtime.ReadMemStats(&m2)
 t.Log(wd, len(out), err, (m2.TotalAlloc-m1.TotalAlloc)>>20)
 }
 _ = zstd.NewReader; _ = bytes.NewReader
}
