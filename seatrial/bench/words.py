"""The 256 words of synthetic prompts, one for each value of a byte: frequent and short, one token each."""

from __future__ import annotations

_TEXT = """
the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you
were all her she there would their we him been has when who will no more if out so up said what its about than into
them can only other time new some could these two may first then do any like my now over such our man me even most
made after also did many off before must well back through years much where your way down should because long each
just state those people too same work still between life being under never last day another while house might great
world year since against right used take three states himself few use place during without again home around small
however found school part once general high upon every does got united left number course war until always away
something fact water less public put think almost hand enough took head yet government system set told nothing night
end why called eyes find going look asked later point knew next city business case group give days young let room word
social side given order often seemed early white large along big show feel face door turn best help line north south
east west free table money story music book paper letter class road car body light voice power force heart child
mother father friend family street river tree green black red blue gold stone
"""
WORDS: tuple[str, ...] = tuple(_TEXT.split())
