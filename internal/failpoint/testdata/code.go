package code

type file interface{ Write() }

func direct(f file) {
	f.Write()
}

func indirect(f file) {
	direct(f)
	f.Write()
}

func makes(f file) func() {
	return func() {
		f.Write()
	}
}

func nothing(f file) { makes(f)() }
