module astrarium/go

go 1.23
