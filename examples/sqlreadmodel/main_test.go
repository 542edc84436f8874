package main

func Example() {
	main()
	// Output:
	// anna has 120 and berta 7
	// berta reads that she has 12
}
