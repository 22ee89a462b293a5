package lies

// finding is a seed with what it once found.
type finding struct {
	seed  uint64
	found string
}

// findings are the seeds that once found something.
func findings() []finding {
	return []finding{
		{3, "the renewal of a denied cluster was approved, because the hub manager had not seen the denial"},
	}
}

// Kept returns the seeds that once found something.
func Kept() []uint64 {
	all := findings()
	seeds := make([]uint64, len(all))
	for i, one := range all {
		seeds[i] = one.seed
	}
	return seeds
}

// Short returns the seeds of the short form: those that once found something, and some that show all scenes.
func Short() []uint64 { return append(Kept(), 41, 76) }
