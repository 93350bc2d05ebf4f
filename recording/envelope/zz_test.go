package envelope
import ("testing";"io";"runtime")
func TestTenGB(t *testing.T){
 for _, s := range suites {
 for _, n := range []int64{1<<20, 10<<30} {
  if s==AES256CBC && n > 1<<30 { n = 2<<30 }
  pr,pw:=io.Pipe()
  var a,b runtime.MemStats
  runtime.GC(); runtime.ReadMemStats(&a)
  go func(){_,_,err:=Seal(pw, io.LimitReader(zeros{},n), testParams(s)); pw.CloseWithError(err)}()
  _,size,err:=Open(io.Discard,pr,Want{},testRootOf)
  runtime.ReadMemStats(&b)
  t.Log(s,n,size,err,"sys+",b.HeapSys-a.HeapSys,"inuse",b.HeapInuse, "total", b.TotalAlloc-a.TotalAlloc)
 }}
}
