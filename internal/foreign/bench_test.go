package foreign

import "testing"

// BenchmarkFind looks at a machine with a thousand processes, none of them Ceph's, as an agent does each 30 s for nothing.
func BenchmarkFind(b *testing.B) {
	p := newFakeProc(b)
	for pid := range 1000 {
		p.run(100+pid, "a program", "/usr/bin/program\x00--with\x00arguments\x00")
	}
	f := Finder{Proc: p.dir}
	for b.Loop() {
		if _, err := f.Find(nil); err != nil {
			b.Fatal(err)
		}
	}
}
