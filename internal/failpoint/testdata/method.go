package code

type saver struct{ file }

func (s saver) Save() { s.Write() }

func (s saver) Lock() {}

// Lock writes; a method that is called so does not.
func Lock(f file) { f.Write() }

func both(s saver, f file) {
	s.Lock()
	s.Save()
	Lock(f)
}
